//! Listening for clients.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Bytes that the system may hold for one client that does not read, as it is asked for them (it takes what it needs for
/// itself beside that). What lies there cannot be taken back when an answer is interrupted: at 24 kHz this is a second of
/// audio. More would be of use only to a connection that carries more than this per round trip.
pub const SEND_BUFFER: u32 = 64 << 10;

/// Listens on `address`; connections that come in have the buffers that a door wants, and do not wait for more to send
/// (where the system lets connections inherit that, as Linux does; else `set_nodelay` each).
///
/// # Errors
/// What the system says: the address is taken, or is not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // Connections inherit both. An event is small and wants to leave at once, whatever was sent just before it.
    socket.set_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(1024)
}
