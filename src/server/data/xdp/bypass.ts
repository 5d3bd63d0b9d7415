import type { BypassKind } from '../bypass.ts'

/** Packets of network interfaces reach the data threads through AF_XDP sockets. */
export const xdp: BypassKind = {
  async open(parts) {
    const { XdpPlane } = await import('./plane.ts')
    const { loadXdpKernel } = await import('../../../transport/udp/xdp/kernel.ts')
    return new XdpPlane({ ...parts, kernel: loadXdpKernel() })
  },
  loadServe: async () => (await import('./serve-xdp.ts')).serveXdp,
}
