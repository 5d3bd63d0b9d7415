import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCoredns } from '../support/coredns.ts'
import { askEach, type Reply } from '../support/dig.ts'
import { isInstalled, needs } from '../support/peer.ts'
import { root, startServer } from '../support/server.ts'

/**
 * Constructs of public Corefiles and of the zones that Zonemaster tests its own program with. Their texts and names are
 * ours. `{Z}` stands for the zone of the block, `{FILE}` for its zone file.
 */
interface Row {
  readonly what: string
  /** By default a name that no other row has. */
  readonly zone?: string
  readonly directives: string
  /** What the zone file has after its SOA and NS. */
  readonly records?: string
  /** By question: `STATUS flags / answer / authority / additional`, as CoreDNS replies. */
  readonly replies: Readonly<Record<string, string>>
  /** By question: where Sextant replies otherwise. */
  readonly different?: Readonly<Record<string, { readonly sextant: string; readonly why: string }>>
}

const { rows }: { rows: readonly Row[] } = JSON.parse(
  readFileSync(join(root, 'test/e2e/coredns-replies.json'), 'utf8'),
)

const BASE = '$TTL 60\n@ SOA ns1 admin. 1 6h 1h 1w 1d\n@ NS ns1\nns1 A 192.0.2.1\n'
const ROOT =
  '$ORIGIN .\n$TTL 60\n@ SOA ns1. admin. 1 6h 1h 1w 1d\n NS ns1.\n MX 0 .\nns1. A 192.0.2.1\n'

const zoneOf = ({ zone }: Row, i: number): string => zone ?? `c${i}.test`

const stage = rows.map((row, i) => {
  const zone = zoneOf(row, i)
  const fill = (text: string): string =>
    text.replaceAll('{Z}', zone).replaceAll('{FILE}', `z${i}.zone`)
  const questions = Object.keys(row.replies)
  return {
    zone,
    questions,
    directives: fill(row.directives),
    records: fill(row.records ?? ''),
    row,
  }
})

const blocks = stage
  .filter(({ zone }) => zone !== '.')
  .map(({ zone, directives }) => {
    const keys = zone.split(' ').map((one) => `${one}:{PORT}`)
    return `${keys.join(' ')} {\nbind 127.0.0.1\n${directives}\n}\n`
  })
  .join('')
const ofRoot = stage.find(({ zone }) => zone === '.')!.directives

const files = {
  'common.zone': 'q A 192.0.2.1\n',
  'hosts.txt': '192.0.2.2 a.h.test\n',
  'root.zone': ROOT,
  ...Object.fromEntries(stage.map(({ records }, i) => [`z${i}.zone`, `${BASE}${records}\n`])),
}

/** Names in lower case: servers compress them differently. */
function print({ status, flags, answer, authority, additional }: Reply): string {
  const head = [status, ...flags.filter((flag) => flag !== 'qr')].join(' ')
  const sections = [answer, authority, additional].map((lines) => lines.join('; '))
  return [head, ...sections].join(' / ').trim().toLowerCase()
}

async function repliesOf(port: number): Promise<string[]> {
  const questions = stage.flatMap(({ zone, questions }) => {
    return questions.map((one) => one.replaceAll('{Z}', zone).split(' '))
  })
  return (await askEach(port, ['+noedns', '+noad'], questions)).map(print)
}

function expected(isSextant: boolean): string[] {
  return stage.flatMap(({ zone, questions, row }) => {
    return questions.map((question) => {
      const ours = isSextant ? row.different?.[question]?.sextant : undefined
      return (ours ?? row.replies[question]!).replaceAll('{Z}', zone).toLowerCase()
    })
  })
}

const titles = stage.flatMap(({ questions, row }) => questions.map((one) => `${row.what}: ${one}`))

t.test('replies are those of CoreDNS', needs('dig'), async (t) => {
  const corefile = `.:{PORT} {\nbind 127.0.0.1\n${ofRoot}\n}\n${blocks}`
  const { port } = await startServer(t, { corefile, files })
  const [got, want] = [await repliesOf(port), expected(true)]
  for (const [i, title] of titles.entries()) t.equal(got[i], want[i], title)
})

// CI does not have it, because no package of Debian contains it, so this is no skipped test there.
if (isInstalled('coredns')) {
  t.test('CoreDNS replies as recorded', async (t) => {
    const port = await startCoredns(t, ofRoot, { blocks, files })
    const [got, want] = [await repliesOf(port), expected(false)]
    for (const [i, title] of titles.entries()) t.equal(got[i], want[i], title)
  })
}
