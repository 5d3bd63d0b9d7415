import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { askNode } from '../../../src/cli/node-api-client.ts'
import { ApiSocket } from '../../../src/plugins/egress/api-socket.ts'
import { recordLog } from '../../support/recorded-log.ts'

t.test('two agents, one socket', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'node.sock')
  const { lines, log } = recordLog()
  const socket = new ApiSocket(path, log)
  const answering = (json: string) => socket.add(() => ({ status: 200, json }))
  const ask = async () => {
    const request = { socket: path, method: 'GET', path: '/', timeoutMs: 30_000 } as const
    const { status, body } = await askNode(request)
    return `${status} ${body.trim()}`
  }
  writeFileSync(path, '')
  const stopFirst = await answering('first')
  t.match(lines, [/^\[ERROR\] no API: .*node\.sock exists and is not a socket; remove it/])
  rmSync(path)
  const stopSecond = await answering('second')
  t.equal(lines.length, 1, 'the next agent tries again')
  t.equal(await ask(), '200 "second"')
  const stopThird = await answering('third')
  t.equal(await ask(), '200 "third"', 'the newest agent answers')
  stopThird()
  t.equal(await ask(), '200 "second"', 'its reload failed')
  const stopFourth = await answering('fourth')
  stopSecond()
  stopFirst()
  t.equal(await ask(), '200 "fourth"', 'its reload succeeded')
  stopFourth()
  t.equal(await ask(), '404 ')
  socket.close()
  t.notOk(existsSync(path))
})
