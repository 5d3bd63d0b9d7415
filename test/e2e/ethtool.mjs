// Does what `ethtool -L IFACE rx NUMBER` or `ethtool -K IFACE txvlan off` does, and prints what went wrong.
//   node ethtool.mjs IFACE rx NUMBER | node ethtool.mjs IFACE txvlan off
import { getSystemErrorName } from 'node:util'
import { loadXdpKernel } from '../../dist/transport/udp/xdp/kernel.js'

const AF_INET = 2
const SOCK_DGRAM = 2
const SIOCETHTOOL = 0x8946
const ETHTOOL_GFLAGS = 0x25
const ETHTOOL_SFLAGS = 0x26
const ETHTOOL_GCHANNELS = 0x3c
const ETHTOOL_SCHANNELS = 0x3d
const ETH_FLAG_TXVLAN = 1 << 7
/** `struct ethtool_channels`: rx_count. `struct ethtool_value`: data. */
const RX_COUNT = 20
const FLAGS = 4

const [name, what, value] = process.argv.slice(2)
const kernel = loadXdpKernel()
const fd = kernel.socket(AF_INET, SOCK_DGRAM, 0)
const command = Buffer.alloc(64)
// struct ifreq: the name, and a pointer.
const request = Buffer.alloc(40)
request.write(name)
request.writeBigUInt64LE(BigInt(kernel.addressOf(command)), 16)

function run(number) {
  command.writeUInt32LE(number, 0)
  if (kernel.ioctl(fd, SIOCETHTOOL, kernel.addressOf(request)) === 0) return
  const errno = kernel.errno()
  process.stdout.write(`${getSystemErrorName(-errno)}\n`)
  process.exit(1)
}

if (what === 'rx') {
  run(ETHTOOL_GCHANNELS)
  command.writeUInt32LE(Number(value), RX_COUNT)
  run(ETHTOOL_SCHANNELS)
} else {
  run(ETHTOOL_GFLAGS)
  command.writeUInt32LE((command.readUInt32LE(FLAGS) & ~ETH_FLAG_TXVLAN) >>> 0, FLAGS)
  run(ETHTOOL_SFLAGS)
}
