import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'
import { PROXY_RULES } from '../../transport/proxy/rules.ts'
import { XDP, type XdpSettings } from '../../transport/udp/xdp/settings.ts'

const QUEUES_MAX = 64
/** IFNAMSIZ of the kernel, without the final zero. */
const NAME_LENGTH_MAX = 15
const MODES: readonly XdpSettings['mode'][] = ['auto', 'native', 'generic', 'copy']

/** `xdp IFACE... { queues N; mode MODE }`: packets of these interfaces bypass the UDP sockets. */
export const xdp: Directive = {
  name: 'xdp',
  setup(c) {
    const d = c.dispenser
    const xdp = c.block.shared.acquire(XDP)
    while (d.next()) {
      if (c.block.shared.find(PROXY_RULES) !== undefined) {
        throw d.error(
          'the block has proxyproto, which needs the UDP sockets; remove one of the two',
        )
      }
      for (const settings of scanXdp(d)) {
        if (xdp.some((one) => one.interfaceName === settings.interfaceName)) {
          throw d.error(`interface ${settings.interfaceName} is listed twice`)
        }
        xdp.push(settings)
      }
    }
    return {}
  },
}

/** The interfaces of one `xdp`, which have the same properties. */
function scanXdp(d: Dispenser): XdpSettings[] {
  const names = d.remainingArgs()
  if (names.length === 0) throw d.error('at least one interface name is expected')
  const wrong = names.find((name) => !isName(name))
  if (wrong !== undefined) throw d.error(`invalid interface name: ${JSON.stringify(wrong)}`)
  let queues = 0
  let mode: XdpSettings['mode'] = 'auto'
  d.eachProperty(() => {
    switch (d.value()) {
      case 'queues':
        queues = scanQueues(d)
        return
      case 'mode':
        mode = scanMode(d)
        return
      default:
        throw d.error(`unknown property ${JSON.stringify(d.value())}; use queues or mode`)
    }
  })
  return names.map((interfaceName) => ({ interfaceName, queues, mode }))
}

/** As the kernel: no slash, colon or space. */
function isName(text: string): boolean {
  return text.length <= NAME_LENGTH_MAX && /^[^/:\s]+$/.test(text) && text !== '.' && text !== '..'
}

function scanQueues(d: Dispenser): number {
  const text = d.onlyArg()
  const queues = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (queues >= 1 && queues <= QUEUES_MAX) return queues
  throw d.error(`queues is ${JSON.stringify(text)}; use a number from 1 to ${QUEUES_MAX}`)
}

function scanMode(d: Dispenser): XdpSettings['mode'] {
  const text = d.onlyArg()
  const mode = MODES.find((one) => one === text)
  if (mode !== undefined) return mode
  throw d.error(`mode is ${JSON.stringify(text)}; use ${MODES.join(', ')}`)
}
