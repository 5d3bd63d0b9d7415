import { isMainThread } from 'node:worker_threads'
import { loadLibc } from '../../../src/transport/udp/batch/libc.ts'

export { DIRECTIVES } from './toys.ts'

/* As `toys.ts`, for data threads in which the kernel refuses every second call that sends replies. */

const EPERM = 1
if (!isMainThread) {
  const libc = loadLibc()
  const { sendmmsg, errno } = libc
  let calls = 0
  let isRefused = false
  Object.assign(libc, {
    sendmmsg: (...args: Parameters<typeof sendmmsg>) => {
      isRefused = ++calls % 2 === 0
      return isRefused ? -1 : sendmmsg(...args)
    },
    errno: () => (isRefused ? EPERM : errno()),
  })
}
