import t from 'tap'
import { COLUMNS } from './columns.ts'
import { ROWS } from './rows.ts'

t.test('x', async (t) => {
  for (const row of ROWS) {
    if (process.env.ROW && !row.name.includes(process.env.ROW)) continue
    console.error(`\n## ${row.name}`)
    for (const [name, column] of Object.entries(COLUMNS)) {
      const { served, messages } = await column(row).catch((e) => ({
        served: new Map([['', e.stack]]),
        messages: [],
      }))
      const texts = new Set(served.values())
      console.error(
        `${name.padEnd(15)} ${texts.size === 1 ? [...texts][0] : JSON.stringify([...served])}`,
      )
      for (const m of messages)
        if (process.env.ROW || !/True ProviderSuccess|FinalizersSet/.test(m))
          console.error(`    ${m}`)
    }
  }
  t.pass()
})
