import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { isPortOwn } from '../../src/transport/own-ports.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../src/transport/udp/batch/socket.ts'
import { needsIPv6 } from '../support/ipv6.ts'

const libc = loadLibc()

t.test('sockets of this process', needsIPv6(), async (t) => {
  const table: [bound: string, wanted: string, isOwn: boolean][] = [
    ['::', '127.0.0.1', true],
    ['::', '::1', true],
    ['::', '0.0.0.0', true],
    ['::', '::', false],
    ['0.0.0.0', '127.0.0.1', true],
    ['0.0.0.0', '::', true],
    ['0.0.0.0', '0.0.0.0', false],
    ['127.0.0.1', '::', true],
    ['127.0.0.1', '0.0.0.0', true],
    ['127.0.0.1', '127.0.0.2', true],
    ['127.0.0.1', '127.0.0.1', false],
    ['::1', '::', true],
    ['::1', '::1', false],
  ]
  for (const [bound, wanted, isOwn] of table) {
    const socket = new BatchSocket(libc, { host: bound, port: 0 })
    t.equal(isPortOwn('udp', wanted, socket.port), isOwn, `${bound} and ${wanted}`)
    socket.close()
  }
})

t.test('listening sockets of another process', needsIPv6(), async (t) => {
  const script = `
const server = require('node:net').createServer()
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.resume().on('end', () => process.exit())`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const [printed] = await once(child.stdout, 'data')
  const port = Number(printed)
  const table: [wanted: string, isOwn: boolean][] = [
    ['::', false],
    ['0.0.0.0', false],
    ['127.0.0.1', false],
    ['127.0.0.2', true],
    ['::1', true],
  ]
  for (const [wanted, isOwn] of table) t.equal(isPortOwn('tcp', wanted, port), isOwn, wanted)
  child.stdin.end()
  await once(child, 'exit')
  t.equal(isPortOwn('tcp', '::', port), true)
})
