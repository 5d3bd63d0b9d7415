import t from 'tap'
import { check } from '../../src/cli/check.ts'
import { lineBufferTo } from '../support/line-buffer.ts'

const CASES: readonly {
  readonly name: string
  readonly corefile: string
  readonly open: boolean
}[] = [
  { name: 'every address', corefile: 'example.org {\n template ANY ANY\n}', open: true },
  {
    name: 'all addresses by name',
    corefile: 'example.org {\n bind 0.0.0.0\n template ANY ANY\n}',
    open: true,
  },
  {
    name: 'a public one',
    corefile: 'example.org {\n bind 192.0.2.1\n template ANY ANY\n}',
    open: true,
  },
  {
    name: 'loopback',
    corefile: 'example.org {\n bind 127.0.0.1 ::1\n template ANY ANY\n}',
    open: false,
  },
  {
    name: 'a private one',
    corefile: 'example.org {\n bind 10.1.2.3\n template ANY ANY\n}',
    open: false,
  },
  { name: 'with small replies only', corefile: 'example.org {\n whoami\n}', open: false },
  { name: 'with small replies to test with', corefile: 'example.org {\n erratic\n}', open: false },
  {
    name: 'with a limit',
    corefile: 'example.org {\n rrl {\n responses-per-second 9\n }\n template ANY ANY\n}',
    open: false,
  },
  {
    name: 'for some clients',
    corefile: 'example.org {\n acl {\n allow net 192.0.2.0/24\n block\n }\n template ANY ANY\n}',
    open: false,
  },
  {
    name: 'for some clients, with all networks by name',
    corefile:
      'example.org {\n acl {\n allow net 192.0.2.0/24\n drop net *\n }\n template ANY ANY\n}',
    open: false,
  },
  {
    name: 'without some types',
    corefile: 'example.org {\n acl {\n block type ANY net *\n }\n template ANY ANY\n}',
    open: true,
  },
  {
    name: 'without some clients',
    corefile: 'example.org {\n acl {\n block net 192.0.2.0/24\n }\n template ANY ANY\n}',
    open: true,
  },
]

for (const { name, corefile, open } of CASES) {
  t.test(`a block without rrl: ${name}`, async (t) => {
    const directory = t.testdir({ Corefile: `${corefile}\n` })
    const printed: string[] = []
    const take = (line: string): void => void printed.push(line)
    const output = { lines: lineBufferTo(printed), print: take, printError: take, flush: () => {} }
    // It is no warning, so that -strict accepts it.
    t.equal(await check(['-conf', `${directory}/Corefile`, '-strict'], output), 0)
    const found = printed.filter((line) =>
      /example\.org\.:53 sends? the victim .* add rrl/.test(line),
    )
    t.equal(found.length, open ? 1 : 0, printed.join('\n'))
  })
}
