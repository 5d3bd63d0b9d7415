import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startBrowser, startConsole } from '../support/browser.ts'
import { needs } from '../support/peer.ts'
import { root } from '../support/server.ts'

// Long: it drives a browser.

const records = readFileSync(join(root, 'zones/app.yaml'), 'utf8')

t.test('the console opens, and shows what the server serves', needs('chromium'), async (t) => {
  const open = await startBrowser(t)
  const { url } = await startConsole(t, { files: { 'records/app.yaml': records } })
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page, violations } = await open(t, url, { colorScheme })
    await page.getByRole('rowheader', { name: 'k.example.com.' }).waitFor()
    t.strictSame(await violations(), [], colorScheme)
  }
})
