import { createSocket } from 'node:dgram'
import type { AddressFamily } from '../../../dns/text/address.ts'

/** Addresses for documentation (RFC 5737, RFC 3849): outside of any cluster. */
const OUTSIDE: Readonly<Record<AddressFamily, string>> = { 1: '192.0.2.1', 2: '2001:db8::1' }
const PORT = 53

/**
 * Resolves to the address from which this host sends to the Internet; undefined = it has no route there. Sends
 * nothing.
 */
export function findNodeAddress(family: AddressFamily): Promise<string | undefined> {
  const socket = createSocket(family === 1 ? 'udp4' : 'udp6')
  return new Promise((resolve) => {
    const end = (address: string | undefined): void => {
      socket.close()
      resolve(address)
    }
    socket.on('error', () => end(undefined))
    // The callback also gets the error of a missing route.
    const connected = (error?: Error): void => {
      end(error === undefined ? socket.address().address : undefined)
    }
    socket.connect(PORT, OUTSIDE[family], connected)
  })
}
