import { SharedValues } from '../../src/base/shared-values.ts'
import type { BypassSite } from '../../src/server/data/bypass.ts'
import { XDP, type XdpSettings } from '../../src/transport/udp/xdp/settings.ts'

/** A server block whose directive `xdp` lists these interfaces. */
export function xdpConfig(...interfaces: XdpSettings[]): BypassSite['plan']['configs'][number] {
  const shared = new SharedValues()
  shared.provide(XDP, interfaces)
  return { directives: ['xdp'], shared }
}
