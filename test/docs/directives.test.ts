import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../support/server.ts'

t.test('the page of directives is what their READMEs say', async (t) => {
  const check = () => execFileSync(process.execPath, [join(root, 'docs/generate.mjs'), '--check'])
  t.doesNotThrow(check)
})
