import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ask } from '../support/dig.ts'
import { scanFences } from '../support/page.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, root, startServer } from '../support/server.ts'

const PAGE = 'docs/how-to/install.md'
const ETC = '/etc/sextant/'
const UNIT = '/etc/systemd/system/sextant.service'

const fences = scanFences(readFileSync(join(root, PAGE), 'utf8'))
const textOf = (file: string): string => fences.find((fence) => fence.file === file)!.text
const unit = textOf(UNIT)

t.test(`${PAGE}: systemd accepts the unit`, needs('systemd-analyze'), async (t) => {
  // The program is not installed here.
  const fitted = unit
    .replace('/usr/local/bin/sextant', `${process.execPath} ${root}/dist/main.js`)
    .replace('User=sextant', 'User=root')
  const directory = t.testdir({ 'sextant.service': fitted })
  const path = join(directory, 'sextant.service')
  const { code, stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', path])
  t.notMatch(stdout + stderr, 'sextant.service')
  t.equal(code, 0, stdout + stderr)
})

t.test(`${PAGE}: the command of the unit serves the zone`, needs('dig'), async (t) => {
  const [, args = ''] = /^ExecStart=\/usr\/local\/bin\/sextant (.*)$/m.exec(unit)!
  t.equal(args, `serve -conf ${ETC}Corefile`)
  const http = await Promise.all([8080, 8181, 9153].map(async (port) => [port, await freePort()]))
  let corefile = textOf(`${ETC}Corefile`).replace(':53', ':{PORT}').replaceAll(ETC, '')
  for (const [port, free] of http) corefile = corefile.replace(`:${port}`, `:${free}`)
  const files = { 'db.example.org': textOf(`${ETC}db.example.org`) }
  const { port, output } = await startServer(t, { corefile, files })
  t.strictSame((await ask('dig', port, ['www.example.org'])).answer, [
    'www.example.org. 3600 IN A 192.0.2.80',
  ])
  t.notMatch(output(), /WARNING|ERROR/)
})
