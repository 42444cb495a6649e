//! Questions to the kernel about an interface, by ioctl: they see the process's network namespace, unlike `/sys`.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::ethtool::Ethtool;
use crate::interface::InterfaceName;

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

/// Link speed in bits per second, when the driver tells.
#[must_use]
pub fn speed(name: &InterfaceName) -> Option<u64> {
    Ethtool::open().ok()?.speed(name)
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

/// What an option may be read as.
///
/// # Safety
/// Plain data without padding, for which any bytes are valid.
pub(crate) unsafe trait Words: Copy + Default {}

// SAFETY: a number.
unsafe impl Words for u32 {}
// SAFETY: numbers.
unsafe impl Words for [u32; 3] {}

pub(super) fn get_option<T: Words>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`, of which the kernel may make any bytes.
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
