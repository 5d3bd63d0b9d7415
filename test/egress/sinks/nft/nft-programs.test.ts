import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NftPrograms } from '../../../../src/egress/sinks/nft/nft.ts'
import { needs, needsRoot } from '../../../support/peer.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

// Own process: it sets HOME.

function programs(t: Test, command: readonly string[]) {
  const ends: string[] = []
  const options = { table: 'x', command, timers: new FakeTimers() }
  const nft = new NftPrograms({ ...options, onEnd: (reason) => ends.push(reason) })
  t.teardown(() => nft.close())
  return { nft, ends }
}

/** A program that notes its starts, and answers as nft until it gets `end`. */
function script(t: Test) {
  const folder = t.testdir({})
  const [path, starts] = [join(folder, 'nft'), join(folder, 'starts')]
  const loop = `while read -r line; do
  case "$line" in
  describe*) echo 'datatype ipv4_addr (x)' ;;
  end) exit 3 ;;
  'list map'*) sleep 0.05 ;;
  'list chains'*) echo 'table inet x {'; echo '}' ;;
  esac
done`
  writeFileSync(path, `#!/bin/sh\necho "$HOME" >>${starts}\n${loop}\n`)
  chmodSync(path, 0o755)
  const homes = () => readFileSync(starts, 'utf8').trim().split('\n')
  return { path, homes }
}

t.test('a session is replaced before it gets slow', async (t) => {
  const { path, homes } = script(t)
  const { nft, ends } = programs(t, [path])
  await nft.commit(['add'])
  const commit = async () => t.equal(await nft.commit(['add']), '')
  for (const sessions of [1, 2, 3]) {
    t.ok(homes().length <= sessions)
    for (let i = 0; i < 1000; i++) await commit()
    await until(async () => {
      await commit()
      return homes().length === sessions + 1
    }, 'the next session')
  }
  t.strictSame(ends, [])
  t.match(await nft.commit(['end']), /nft ended with exit code 3/)
  await commit()
  t.strictSame(new Set(homes()), new Set(['/dev/null']), 'without a history')
})

t.test('a session that is replaced during a glance', async (t) => {
  const { path, homes } = script(t)
  const { nft, ends } = programs(t, [path])
  for (let i = 0; i < 1000; i++) await nft.commit(['add'])
  for (let i = 0; i < 5; i++) t.same((await nft.glance())?.elements, new Map())
  t.equal(homes().length, 2)
  t.strictSame(ends, [])
})

t.test('nft writes no history', { ...needsRoot(), ...needs('nft') }, async (t) => {
  const home = t.testdir({})
  const before = process.env.HOME
  process.env.HOME = home
  t.teardown(() => {
    process.env.HOME = before
  })
  const { nft } = programs(t, ['unshare', '-n', 'nft'])
  t.equal(await nft.commit(['add table inet x']), '')
  await nft.close()
  t.notOk(existsSync(join(home, '.nft.history')))
})
