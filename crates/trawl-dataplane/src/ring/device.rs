//! Questions to the kernel about an interface, by ioctl: they see the process's network namespace, unlike `/sys`.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::interface::InterfaceName;

const ETHTOOL_GSET: u32 = 1;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GRXRINGS: u32 = 0x2d;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const FLAG_RX_VLAN: u32 = 1 << 8;

/// What is known of an interface now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Kernel index; another one means another interface of the same name.
    pub index: u32,
    /// Administratively up and with carrier.
    pub up: bool,
    /// `lo` and its like, which show every packet twice.
    pub loopback: bool,
    /// Ethernet framing.
    pub ethernet: bool,
}

/// Looks at an interface; `None` when there is none of that name.
///
/// # Errors
/// What the system says when it could not look.
pub fn link(name: &InterfaceName) -> io::Result<Option<Link>> {
    let socket = query_socket()?;
    let index = match rustix::net::netdevice::name_to_index(&socket, name.as_str()) {
        Ok(index) => index,
        Err(rustix::io::Errno::NODEV | rustix::io::Errno::NXIO) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let mut request = request(name);
    ioctl(socket.as_fd(), libc::SIOCGIFFLAGS as libc::c_ulong, &mut request)?;
    // SAFETY: the kernel filled the flags member for this request.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags }) & 0xffff;
    let mut hardware = self::request(name);
    ioctl(
        socket.as_fd(),
        libc::SIOCGIFHWADDR as libc::c_ulong,
        &mut hardware,
    )?;
    // SAFETY: the kernel filled the address member for this request.
    let family = unsafe { hardware.ifr_ifru.ifru_hwaddr.sa_family };
    let running = libc::IFF_UP | libc::IFF_RUNNING;
    let loopback = flags & libc::IFF_LOOPBACK != 0;
    let ethernet = family == libc::ARPHRD_ETHER || family == libc::ARPHRD_LOOPBACK;
    Ok(Some(Link {
        index,
        up: flags & running == running,
        loopback,
        ethernet,
    }))
}

/// Largest packet in bytes, without the Ethernet header.
///
/// # Errors
/// What the system says.
pub fn mtu(name: &InterfaceName) -> io::Result<u32> {
    let mut request = request(name);
    ioctl(
        query_socket()?.as_fd(),
        libc::SIOCGIFMTU as libc::c_ulong,
        &mut request,
    )?;
    // SAFETY: the kernel filled the MTU member for this request.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(mtu.max(0).cast_unsigned())
}

/// Whether the node itself has an address here: one of IPv4, or one of IPv6 that is not merely link-local, since
/// every interface that is up has one of those.
#[must_use]
pub fn has_address(name: &InterfaceName) -> bool {
    has_ipv4(name)
        || std::fs::read_to_string("/proc/thread-self/net/if_inet6")
            .is_ok_and(|table| lists_ipv6(&table, name))
}

/// Whether this `if_inet6` table has an address of the interface: address, index, prefix, scope, flags, name.
fn lists_ipv6(table: &str, name: &InterfaceName) -> bool {
    const LINK_LOCAL: &str = "20";
    table
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .any(|f| matches!(f[..], [_, _, _, scope, _, device] if device == name.as_str() && scope != LINK_LOCAL))
}

fn has_ipv4(name: &InterfaceName) -> bool {
    let Ok(socket) = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None) else {
        return false;
    };
    ioctl(
        socket.as_fd(),
        libc::SIOCGIFADDR as libc::c_ulong,
        &mut request(name),
    )
    .is_ok()
}

/// Link speed in bits per second, when the driver tells.
#[must_use]
pub fn speed(name: &InterfaceName) -> Option<u64> {
    #[repr(C)]
    #[derive(Default)]
    struct Settings {
        command: u32,
        supported: u32,
        advertising: u32,
        speed: u16,
        small: [u8; 6],
        packets: [u32; 2],
        speed_high: u16,
        mdix: [u8; 2],
        more: [u32; 3],
    }
    let mut settings = Settings {
        command: ETHTOOL_GSET,
        ..Settings::default()
    };
    ethtool(name, &mut settings).ok()?;
    let megabits = (u32::from(settings.speed_high) << 16) | u32::from(settings.speed);
    (megabits != 0 && megabits != u32::MAX && megabits != u32::from(u16::MAX))
        .then(|| u64::from(megabits) * 1_000_000)
}

/// Receive queues in use and the word that `ethtool -L` has for them; `None` when the driver does not tell.
#[must_use]
pub fn receive_queues(name: &InterfaceName) -> Option<(u32, &'static str)> {
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        command: u32,
        max: [u32; 4],
        rx: u32,
        tx: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels {
        command: ETHTOOL_GCHANNELS,
        ..Channels::default()
    };
    if ethtool(name, &mut channels).is_ok() {
        let word = if channels.combined > 0 { "combined" } else { "rx" };
        return Some((channels.rx + channels.combined, word));
    }
    receive_rings(name).map(|rings| (rings, "rx"))
}

/// The same question as drivers answer it that spread flows but have no channels.
fn receive_rings(name: &InterfaceName) -> Option<u32> {
    /// `struct ethtool_rxnfc`, and room for all of it.
    #[repr(C)]
    #[derive(Default)]
    struct Classification {
        command: u32,
        flow_type: u32,
        data: u64,
        rest: [u64; 30],
    }
    let mut rings = Classification {
        command: ETHTOOL_GRXRINGS,
        ..Classification::default()
    };
    ethtool(name, &mut rings).ok()?;
    u32::try_from(rings.data).ok()
}

/// Makes the NIC leave VLAN tags in the frames. `Ok` when they are there afterwards.
///
/// # Errors
/// The driver strips tags and will not stop.
pub fn keep_vlan_tags(name: &InterfaceName) -> io::Result<()> {
    let mut flags = [ETHTOOL_GFLAGS, 0];
    if ethtool(name, &mut flags).is_err() || flags[1] & FLAG_RX_VLAN == 0 {
        return Ok(());
    }
    ethtool(name, &mut [ETHTOOL_SFLAGS, flags[1] & !FLAG_RX_VLAN])?;
    let mut flags = [ETHTOOL_GFLAGS, 0];
    ethtool(name, &mut flags)?;
    if flags[1] & FLAG_RX_VLAN == 0 {
        Ok(())
    } else {
        Err(io::Error::other("the driver ignored the request"))
    }
}

pub(super) fn query_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

pub(super) fn request(name: &InterfaceName) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid ifreq, which is plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_str().bytes()) {
        *to = from.cast_signed();
    }
    request
}

fn ioctl(socket: BorrowedFd<'_>, code: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every code used here takes an ifreq, which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), code as _, std::ptr::from_mut(request)) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// `T` must be the structure that its first word, the ethtool command, stands for.
fn ethtool<T>(name: &InterfaceName, argument: &mut T) -> io::Result<()> {
    const { assert!(size_of::<T>() >= 8) };
    let socket = query_socket()?;
    let mut request = request(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(argument).cast();
    ioctl(socket.as_fd(), libc::SIOCETHTOOL as libc::c_ulong, &mut request)
}

pub(crate) fn set_option<T>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which lives through the call; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// `T` must be plain data for which any bytes are valid.
pub(crate) fn get_option<T: Copy + Default>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`, which is plain data that the kernel may overwrite.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_global_address_makes_an_interface_the_machines_own_and_a_link_local_one_does_not() {
        let table = "\
fe80000000000000bc89e1fffe4fd58f 02 40 20 80     eth0\n\
00000000000000000000000000000001 01 80 10 80       lo\n\
20010db8000000000000000000000001 03 40 00 80     eth1\n";
        for (name, wanted) in [("eth0", false), ("lo", true), ("eth1", true), ("eth", false)] {
            assert_eq!(lists_ipv6(table, &name.parse().unwrap()), wanted, "{name}");
        }
    }
}
