import t from 'tap'
import { root, runSextant } from '../support/server.ts'

// Long: the demo takes half a minute.

t.test('the demo shows two sites and ends by itself', async (t) => {
  const { code, stdout, stderr } = await runSextant(root, ['demo'], 600_000)
  t.equal(code, 0, stderr)
  const shown = stdout.replaceAll('\t', ' ')
  for (const site of ['berlin', 'boston']) {
    for (const [place, address] of [
      ['Europe', '192.0.2.1'],
      ['Africa', '192.0.2.1'],
      ['North America', '198.51.100.1'],
      ['South America', '198.51.100.1'],
      ['Asia', '198.51.100.1'],
      ['Oceania', '198.51.100.1'],
    ] as const) {
      const answer = new RegExp(
        `query to ${site} from ${place} .*\\n(?:\\S+ \\d+ IN CNAME .*\\n){3}\\S+ \\d+ IN A ${address}\\n`,
      )
      t.match(shown, answer, `${site}, ${place}`)
    }
  }
  t.match(stdout, /Web consoles: http:\/\/127\.0\.0\.1:\d+\/console\/ of berlin/)
  t.match(stdout, /192\.0\.2\.2, after \d+ ms/)
  t.match(stdout, /killed.*\n {2}192\.0\.2\.2\n/)
  t.match(stdout, /restarts.*\n {2}192\.0\.2\.2\n/)
  t.match(stdout, /starts again.*\n {2}192\.0\.2\.3\n/)
})
