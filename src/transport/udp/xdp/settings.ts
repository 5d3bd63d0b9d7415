import { lazyKey } from '../../../base/shared-values.ts'

/** How packets of one network interface bypass the sockets. */
export interface XdpSettings {
  readonly interfaceName: string
  /** Receive queues to serve; 0 = all. */
  readonly queues: number
  readonly mode: 'auto' | 'native' | 'generic' | 'copy'
}

/** Interfaces of a server block whose packets bypass the sockets, each once. */
export const XDP = lazyKey('interfaces that bypass the sockets', (): XdpSettings[] => [])
