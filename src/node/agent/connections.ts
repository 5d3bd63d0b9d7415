import type { AddressPair } from '../enforcer.ts'

/** Called with the address of the client and the one that it connects to, both in canonical form. */
export type OnConnection = (client: string, address: string) => void

/** The connections that the kernel tracks. */
export interface Connections {
  /**
   * Reports all open connections. Resolves with '' if these were all, otherwise with the reason why
   * some may be missing.
   */
  dump(onConnection: OnConnection): Promise<string>
  /** Reports new connections until `close`. Some may be missing. */
  watch(onConnection: OnConnection): void
  /** Ends the connections of clients to addresses. */
  cut(pairs: readonly AddressPair[]): void
  close(): void
}
