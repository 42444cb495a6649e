# shellcheck shell=bash
# Certificates and kubeconfigs of one name. Each is made once and kept until 'down'.

PKI_DAYS=365
pki_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1" && chmod 600 "$1"; }

pki_ca() {
  PKI=$S/pki
  [ ! -s "$PKI/ca.crt" ] || return 0
  mkdir -p "$PKI"; chmod 700 "$PKI"
  pki_key "$PKI/ca.key"
  openssl req -x509 -new -key "$PKI/ca.key" -days $PKI_DAYS -subj "/CN=trawl-dev-$NAME" \
    -addext 'keyUsage=critical,keyCertSign,cRLSign,digitalSignature' -out "$PKI/ca.crt.new"
  mv "$PKI/ca.crt.new" "$PKI/ca.crt"
}

# pki_cert FILE SUBJECT EXTENSIONS: a leaf signed by the CA; written last, so a half-made one is made again.
pki_cert() {
  local file=$PKI/$1
  [ ! -s "$file.crt" ] || return 0
  pki_key "$file.key"
  openssl req -new -key "$file.key" -subj "$2" |
    openssl x509 -req -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -set_serial "0x$(openssl rand -hex 16)" -days $PKI_DAYS \
      -extfile <(printf '%s\n' 'basicConstraints=critical,CA:FALSE' 'keyUsage=critical,digitalSignature' "$3") -out "$file.crt.new" 2>/dev/null
  mv "$file.crt.new" "$file.crt"
}
pki_client() { pki_cert "$1" "$2" extendedKeyUsage=clientAuth; }
pki_server() { pki_cert "$1" "/CN=$2" "extendedKeyUsage=serverAuth
subjectAltName=$3"; }

pki_service_account_keys() {
  [ ! -s "$PKI/sa.pub" ] || return 0
  pki_key "$PKI/sa.key"
  openssl ec -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
}

# kubeconfig FILE CERTIFICATE SERVER: certificates are embedded, so that the file works from anywhere.
kubeconfig() {
  (
    umask 077
    write_if_changed "$1" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: trawl-dev
  cluster:
    server: $3
    certificate-authority-data: $(base64 -w0 <"$PKI/ca.crt")
users:
- name: $2
  user:
    client-certificate-data: $(base64 -w0 <"$PKI/$2.crt")
    client-key-data: $(base64 -w0 <"$PKI/$2.key")
contexts:
- name: trawl-dev
  context: {cluster: trawl-dev, user: $2}
current-context: trawl-dev
YAML
  )
}
