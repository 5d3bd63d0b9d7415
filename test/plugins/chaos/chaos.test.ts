import { hostname } from 'node:os'
import t from 'tap'
import { VERSION } from '../../../src/base/version.ts'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { chaos } from '../../../src/plugins/chaos/setup.ts'
import { SetUp } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'

/** Class HS (RFC 1035 section 3.2.4). */
const HESIOD = 4
const PASSED = 9
const passed = answering(() => PASSED)

function text(hex: string): string {
  return Buffer.from(hex.split(' ').at(-1)!, 'hex').subarray(1).toString()
}

async function ask(
  corefile: string,
  name: string,
  type: number = RRType.TXT,
  qclass: number = RRClass.CH,
) {
  const handler = new SetUp(chaos, corefile).handler(passed)
  const shown = await show(handler, transaction({ name, type, class: qclass }))
  if (shown.status.startsWith('NOERROR')) return shown.answer.map(text).sort()
  return shown.status.startsWith('REFUSED') ? 'refused' : 'passed on'
}

t.test('what it says', async (t) => {
  const table = [
    { corefile: 'chaos', name: 'version.bind.', want: [`Sextant-${VERSION}`] },
    { corefile: 'chaos secret', name: 'version.bind.', want: ['secret'] },
    { corefile: 'chaos secret', name: 'VERSION.server.', want: ['secret'] },
    { corefile: 'chaos', name: 'hostname.bind.', want: [hostname()] },
    { corefile: 'chaos', name: 'id.server.', want: [hostname()] },
    { corefile: 'chaos v me you me', name: 'authors.bind.', want: ['me', 'you'] },
    { corefile: 'chaos', name: 'a.version.bind.', want: 'refused' },
    { corefile: 'chaos', name: 'bind.', want: 'refused' },
    { corefile: `chaos ${'x'.repeat(300)}`, name: 'version.bind.', want: ['x'.repeat(255)] },
  ]
  for (const { corefile, name, want } of table) {
    t.strictSame(await ask(corefile, name), want, `${corefile.slice(0, 20)} ${name}`)
  }
})

t.test('class IN is handed on, and whatever else is not ours is refused', async (t) => {
  t.equal(await ask('chaos', 'version.bind.', RRType.TXT, RRClass.IN), 'passed on')
  t.equal(await ask('chaos', 'version.bind.', RRType.A), 'refused')
  t.equal(await ask('chaos', 'foo.bind.'), 'refused')
  t.equal(await ask('chaos', 'version.bind.', RRType.TXT, HESIOD), 'refused')
})

t.test('authors come in every order', async (t) => {
  const handler = new SetUp(chaos, 'chaos v a b c').handler(passed)
  const orders = new Set<string>()
  for (let seed = 0; seed < 200; seed++) {
    const tx = transaction({ name: 'authors.bind.', type: RRType.TXT, class: RRClass.CH, seed })
    orders.add((await show(handler, tx)).answer.map(text).join(''))
  }
  t.strictSame([...orders].sort(), ['abc', 'acb', 'bac', 'bca', 'cab', 'cba'])
})
