import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type {
  DataSocket,
  DataThreadInit,
  FromDataThread,
  ToDataThread,
} from '../../src/server/data/messages.ts'
import { serveXdp } from '../../src/server/data/xdp/serve-xdp.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { BatchLoop } from '../../src/transport/udp/batch/loop.ts'
import { BatchSocket } from '../../src/transport/udp/batch/socket.ts'
import { WakeReader } from '../../src/transport/udp/batch/wake.ts'
import { Echo } from './echo.ts'

/*
 * A data thread that knows no DNS: serves an Echo with the mark `generation` on each socket that it is
 * given, and hands over what waits.
 */
const { init, port } = workerData as { init: DataThreadInit; port: MessagePort }
const libc = loadLibc()
const echoes = new Map<number, Echo>()
const byAddress = new Map<string, Echo>()
/** One for the UDP socket and one for each AF_XDP socket of the thread: a loop keeps one of each lane. */
const EXCHANGES = 2

const post = (message: FromDataThread): void => port.postMessage(message)

const loop = new BatchLoop(libc, new WakeReader(libc, init.wake), {
  onWake: () => {
    for (;;) {
      const received = receiveMessageOnPort(port)
      if (received === undefined) return
      take(received.message as ToDataThread)
    }
  },
  onHandOver: (fd, unit) => post({ kind: 'query', fd, unit }),
  onFault: (error) => post({ kind: 'fault', stack: String(error) }),
  onBatch: () => {},
  onBatchEnd: () => {},
})

function take(message: ToDataThread): void {
  switch (message.kind) {
    case 'serve':
      for (const socket of message.sockets) serve(socket, message.generation)
      return
    case 'commit':
      for (const socket of message.sockets) serve(socket, message.generation)
      post({ kind: 'committed', generation: message.generation })
      return
    case 'bypass':
      post({ kind: 'bypassed', id: message.id, fault: serveXdp(loop, message.body, byAddress) })
      return
    case 'detach':
      for (const fd of message.fds) detach(fd)
      post({ kind: 'detached', fds: message.fds })
      return
    default:
      loop.stop()
  }
}

function serve({ address, fd, host, port, counts }: DataSocket, mark: number): void {
  const echo = new Echo(EXCHANGES, { mark, handsOver: true })
  if (loop.setHandler(fd, echo)) checkIdle(fd)
  else {
    const onRefused = (errno: number) => post({ kind: 'fault', stack: `groups refused: ${errno}` })
    loop.add(new BatchSocket(libc, { fd, host, port }, { onRefused }), echo, counts)
  }
  echoes.set(fd, echo)
  byAddress.set(address, echo)
}

function detach(fd: number): void {
  loop.remove(fd)
  checkIdle(fd)
  echoes.delete(fd)
}

/** What a loop serves no more has all its exchanges back. */
function checkIdle(fd: number): void {
  const lent = echoes.get(fd)?.inFlight ?? 0
  if (lent > 0) post({ kind: 'fault', stack: `${lent} exchanges of socket ${fd} are not back` })
}

loop.run()
