import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { A, AAAA, ask, CHAOS, EDNS, TXT, unusualQueries } from '../../support/query-cases.ts'
import { countsOf, SpreadClient } from '../../support/transcript.ts'
import { until } from '../../support/until.ts'
import { serve } from './stage.ts'

// Long: it starts a server with threads for each case.

const ZONE = `$TTL 60
@ IN SOA a b 1 2 3 4 5
@ IN NS a
a IN A 192.0.2.1
out IN CNAME a.later.example.
twice IN CNAME out.later.example.
lost IN CNAME none.later.example.
`

const corefile = (directory: string): string => {
  const common = `bind 127.0.0.1\n multisocket 2\n root ${directory}\n errors\n log\n prometheus :1`
  return `example.org:{PORT} {
    ${common}
    acl {
        block type AAAA
    }
    file db.now
}
later.example:{PORT} {
    ${common}
    nsid here
    acl {
        block type AAAA
        drop type TXT
    }
    later
    file db.later {
        fallthrough
    }
}
waits-for-nothing.example:{PORT} {
    ${common}
    later
    whoami
}
`
}

/** How long a test waits before it takes silence for no answer. Where an answer must come, it waits much longer. */
const LATE_MS = 500
const LATE_MS_MAX = 60_000

/** What chains may wait for is on the control thread: queries go there, and their answers come back. */
t.test('queries whose chain may wait', async (t) => {
  const directory = t.testdir({ 'db.now': ZONE })
  writeFileSync(join(directory, 'db.later'), ZONE.replaceAll('later.example', 'example.org'))
  const asker = await SpreadClient.open(t)
  const asks = [
    ask('a.later.example'),
    ask('a.later.example', A, { edns: { options: [[3, Buffer.alloc(0)]] } }),
    ask('a.later.example', AAAA),
    ask('a.later.example', TXT),
    ask('no.later.example'),
    ask('A.WAITS-for-nothing.example', A, { edns: EDNS }),
    // Chains that find out half-way: what they did so far must not be counted or logged twice.
    ask('out.example.org'),
    ask('twice.example.org'),
    ask('lost.example.org'),
    // The other way round.
    ask('out.later.example'),
    ask('a.example.org', AAAA),
    ask('a.example.org'),
    ask('version.bind', TXT, { rrclass: CHAOS }),
    ...unusualQueries('a.later.example'),
    ...unusualQueries('twice.example.org'),
  ]
  const dgram = await serve(t, 'dgram', corefile(directory))
  const want = await asker.askAll(
    asks,
    dgram.port,
    asks.map(() => LATE_MS),
  )
  const wantCounts = countsOf(await dgram.metrics())
  await dgram.stop()
  const batch = await serve(t, 'batch', corefile(directory), dgram.port)
  const patience = want.map((replies) => (replies.has('') ? LATE_MS : LATE_MS_MAX))
  const got = await asker.askAll(asks, batch.port, patience)
  for (const [i, { what }] of asks.entries()) {
    t.strictSame([...got[i]!.keys()], [...want[i]!.keys()], what)
  }
  await sameSoon(t, async () => countsOf(await batch.metrics()), wantCounts, 'metrics')
  await batch.stop()
  const linesOf = (lines: readonly string[]): string[] => {
    return lines.map((line) => line.replace(/\d+\.\d+s$/, '')).sort()
  }
  t.strictSame(linesOf(batch.lines), linesOf(dgram.lines), 'log')
  t.equal(batch.totals.panics, 0)
})

/** Compares once the two are equal, or when the wait is given up: some of it takes its time to arrive. */
async function sameSoon<T>(
  t: Test,
  got: () => T | Promise<T>,
  want: T,
  what: string,
): Promise<void> {
  const equal = async () => JSON.stringify(await got()) === JSON.stringify(want)
  await until(equal, what).catch(() => {})
  t.strictSame(await got(), want, what)
}
