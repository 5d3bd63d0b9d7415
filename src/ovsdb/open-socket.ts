import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { reasonOf } from '../base/system-error.ts'
import type { Timers } from '../base/timers.ts'
import type { OvsdbRemote } from './remote.ts'

const CONNECT_MS = 5000

/** Paths of PEM files. They are read before each connection, because they may be replaced. */
export interface OvsdbTlsFiles {
  readonly authority: string
  /** The client's own certificate and its key. */
  readonly certificate: string
  readonly key: string
  /** The name that the server's certificate must have; '' = the host of the remote. */
  readonly serverName: string
}

/** Connects to a server. Rejects with the reason, after 5 seconds at the latest. */
export async function openSocket(
  remote: OvsdbRemote,
  files: OvsdbTlsFiles | undefined,
  timers: Timers,
): Promise<Socket> {
  const { open, event } = await prepare(remote, files)
  return new Promise((resolve, reject) => {
    // The listeners must be there before the next turn: a system may refuse an address at once.
    const socket = open()
    const end = (fault: string): void => {
      cancel()
      socket.off('error', onError).off('close', onClose).off(event, onOpen)
      if (fault === '') {
        resolve(socket)
        return
      }
      // An error may follow when the socket is destroyed.
      socket.on('error', () => {})
      socket.destroy()
      reject(new Error(fault))
    }
    const cancel = timers.after(CONNECT_MS, () => end(`no connection in ${CONNECT_MS / 1000} s`))
    const onError = (error: Error): void => end(reasonOf(error))
    const onClose = (): void => end('the server closed the connection')
    const onOpen = (): void => end('')
    socket.on('error', onError).on('close', onClose).on(event, onOpen)
  })
}

/** Returns how to open the socket, and the event that says that it is connected. */
async function prepare(
  remote: OvsdbRemote,
  files: OvsdbTlsFiles | undefined,
): Promise<{ readonly open: () => Socket; readonly event: string }> {
  if (remote.kind === 'unix') return { open: () => connect(remote.path), event: 'connect' }
  const { host, port } = remote
  if (remote.kind === 'tcp') return { open: () => connect(port, host), event: 'connect' }
  if (files === undefined) throw new Error('ssl needs the files of certificates')
  const [ca, cert, key] = await Promise.all(
    [files.authority, files.certificate, files.key].map((path) => readFile(path)),
  )
  const name = files.serverName === '' ? {} : { servername: files.serverName }
  const open = () => connectTls({ host, port, ca, cert, key, ...name })
  return { open, event: 'secureConnect' }
}
