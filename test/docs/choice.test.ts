import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { UdpClient } from '../support/client.ts'
import { root, startServer } from '../support/server.ts'

// Long: it asks a server thousands of times.

/** Asks per row of a table; shares may then be off by SHARE_OFF, seven standard deviations of a half. */
const ASKS = 1000
const SHARE_OFF = 0.11

interface Row {
  readonly subnet: string
  readonly name: string
  readonly type: string
  /** Sorted targets, joined by `+`, to their share. */
  readonly shares: ReadonlyMap<string, number>
}

interface Example {
  readonly title: string
  readonly manifest: string
  readonly rows: readonly Row[]
}

const page = readFileSync(join(root, 'docs/explanation/choice.md'), 'utf8')

function fence(text: string, language: string): string | undefined {
  return new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(text)?.[1]
}

function scanRow(line: string): Row | undefined {
  const cells = line.split('|').map((cell) => cell.trim())
  const [, subnet = '', question = '', answers = ''] = cells
  if (!/^\d/.test(subnet)) return undefined
  const [name = '', type = ''] = question.split(' ')
  const shares = answers.split(' · ').map((answer): [string, number] => {
    const [targets = '', share = ''] = answer.split(' ')
    return [targets, Number.parseInt(share, 10) / 100]
  })
  return { subnet, name, type, shares: new Map(shares) }
}

const examples: Example[] = page
  .split(/^## /m)
  .slice(1)
  .flatMap((section) => {
    const manifest = fence(section, 'yaml')
    if (manifest === undefined) return []
    const rows = section.split('\n').flatMap((line) => scanRow(line) ?? [])
    return [{ title: section.split('\n')[0] ?? '', manifest, rows }]
  })

function answerOf(reply: Buffer): string {
  const message = parseMessage(reply)
  if (message === undefined) throw new Error('the reply is malformed')
  return message.answer
    .filter((record) => record.type !== RRType.CNAME)
    .map((record) => printRdata(record.type, record.rdata))
    .sort()
    .join('+')
}

async function checkRow(t: Test, client: UdpClient, row: Row): Promise<void> {
  const counts = new Map<string, number>()
  const question = { name: row.name, type: row.type, subnet: row.subnet }
  for (let asked = 0; asked < ASKS; asked += 50) {
    const replies = await Promise.all(Array.from({ length: 50 }, () => client.ask(question)))
    for (const answer of replies.map(answerOf)) counts.set(answer, (counts.get(answer) ?? 0) + 1)
  }
  t.strictSame([...counts.keys()].sort(), [...row.shares.keys()].sort(), `${row.name}: answers`)
  for (const [answer, share] of row.shares) {
    const seen = (counts.get(answer) ?? 0) / ASKS
    t.ok(Math.abs(seen - share) <= SHARE_OFF, `${row.name} ${answer}: ${seen}, wanted ${share}`)
  }
}

t.test('the examples of docs/explanation/choice.md are what the server does', async (t) => {
  t.ok(examples.length >= 7, `${examples.length} examples`)
  const corefile = (fence(page, 'corefile') ?? '').replace(':1053', ':{PORT}')
  const files = Object.fromEntries(
    examples.map(({ manifest }, index) => [`records/${index}.yaml`, manifest]),
  )
  const server = await startServer(t, { corefile, files })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  for (const { title, rows } of examples) {
    await t.test(title, async (t) => {
      t.ok(rows.length > 0, 'has a table')
      for (const row of rows) await checkRow(t, client, row)
    })
  }
})
