// Command probe is the only content of the test image: small acts that prove what a pod may do.
//
//	http PORT | get URL | unix-serve PATH | unix-get PATH | packet-socket | send-frame LINK | show FILE | wait
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

const caFile = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "wait":
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		<-stop
		return nil
	case len(args) == 1 && args[0] == "packet-socket":
		return packetSocket()
	case len(args) != 2:
		return errors.New("usage: probe http|get|unix-serve|unix-get|show|send-frame ARGUMENT, or probe packet-socket|wait")
	}
	switch args[0] {
	case "http":
		host, _ := os.Hostname()
		return http.ListenAndServe(":"+args[1], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "hello from", host)
		}))
	case "get":
		return get(args[1])
	case "unix-serve":
		return unixServe(args[1])
	case "unix-get":
		c, err := net.Dial("unix", args[1])
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, c)
		return err
	case "send-frame":
		return sendFrame(args[1])
	case "show":
		b, err := os.ReadFile(args[1])
		fmt.Print(string(b))
		return err
	}
	return fmt.Errorf("no act %q", args[0])
}

// get fetches with the cluster's CA and, when there is one, the pod's token.
func get(url string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if pem, err := os.ReadFile(caFile); err == nil {
		pool.AppendCertsFromPEM(pem)
	}
	if token, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/token"); err == nil {
		req.Header.Set("Authorization", "Bearer "+string(token))
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	fmt.Println("status", res.StatusCode)
	_, err = io.Copy(os.Stdout, res.Body)
	return err
}

func unixServe(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	// Writing is what connecting needs, and the other container has another uid.
	if err := os.Chmod(path, 0o666); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprintln(c, "hello over a unix socket")
		c.Close()
	}
}

const ethPAll = 0x0300 // ETH_P_ALL in network byte order

// sendFrame sends one broadcast frame of the EtherType for local experiments.
func sendFrame(link string) error {
	nic, err := net.InterfaceByName(link)
	if err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, ethPAll)
	if err != nil {
		return err
	}
	frame := make([]byte, 60)
	copy(frame, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x88, 0xb5})
	return syscall.Sendto(fd, frame, 0, &syscall.SockaddrLinklayer{Ifindex: nic.Index, Halen: 6})
}

func packetSocket() error {
	if _, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, ethPAll); err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	links, err := net.Interfaces()
	if err != nil {
		return err
	}
	fmt.Print("packet socket opened beside")
	for _, l := range links {
		fmt.Print(" ", l.Name)
	}
	fmt.Println()
	return nil
}
