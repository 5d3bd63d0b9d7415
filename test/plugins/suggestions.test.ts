import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordOutput } from '../support/recorded-output.ts'

/** A block of a Corefile with one misspelt word, and the word that is meant. */
const TABLE: readonly (readonly [block: string, meant: string])[] = [
  ['kuadrnat', 'kuadrant'],
  ['forwrad . 192.0.2.1', 'forward'],
  ['kuadrant {\n manifest zones\n}', 'manifests'],
  ['kuadrant {\n probes\n}', 'probe'],
  ['kuadrant {\n manifests zones\n peer 192.0.2.1 {\n  alow name a\n }\n}', 'allow'],
  ['file db {\n relod 5s\n}', 'reload'],
  ['auto {\n directry zones\n}', 'directory'],
  ['hosts {\n fallthrough\n no_revers\n}', 'no_reverse'],
  ['dns64 {\n translateall\n}', 'translate_all'],
  ['geoip {\n edns_subnet\n}', 'edns-subnet'],
  ['geoip {\n net 192.0.2.0/24 UK\n}', 'GB'],
  ['admin {\n tokn x\n}', 'token'],
  ['tsig {\n secert x\n}', 'secret'],
  ['loadbalance round-robin', 'round_robin'],
  ['loadbalance round_robin {\n preffer 192.0.2.0/24\n}', 'prefer'],
  ['kubernetes cluster.local {\n namespace x\n}', 'namespaces'],
  ['kubernetes cluster.local {\n pods verifyed\n}', 'verified'],
  ['rrl {\n response-per-second 1\n}', 'responses-per-second'],
  ['cache {\n servestale\n}', 'serve_stale'],
  ['k8s_external x {\n headles\n}', 'headless'],
  ['transfer {\n too *\n}', 'to'],
  ['secondary {\n transfers from 192.0.2.1\n}', 'transfer'],
  ['forward . 192.0.2.1 {\n max_conncurrent 1\n}', 'max_concurrent'],
  ['forward . 192.0.2.1 {\n policy randm\n}', 'random'],
  ['forward . 192.0.2.1 {\n health_check 1s no_rek\n}', 'no_rec'],
  ['template IN A {\n anwser "x"\n}', 'answer'],
  ['egress {\n concurency 1\n}', 'concurrency'],
  ['egressfirewall {\n min_ttl 1\n}', 'minTTL'],
  ['errors {\n consolidat 5m x\n}', 'consolidate'],
  ['errors {\n consolidate 5m x warnin\n}', 'warning'],
  ['timeouts {\n idel 5s\n}', 'idle'],
  ['log {\n class denail\n}', 'denial'],
  ['header {\n response set aaa\n}', 'aa'],
  ['rewrite nam a b', 'name'],
  ['prometheus {\n runtime_metric\n}', 'runtime_metrics'],
  ['ready {\n monitr\n}', 'monitor'],
]

t.test('a misspelt name of a Corefile is refused with the one that was meant', async (t) => {
  const directory = t.testdir({})
  const path = join(directory, 'Corefile')
  for (const [block, meant] of TABLE) {
    writeFileSync(path, `example.org {\n${block}\n}\n`)
    const { output, errors } = recordOutput(directory)
    t.equal(await check(['-conf', path, '--offline'], output), 1, block)
    const found = errors.some((error) => error.includes(`did you mean ${meant}?`))
    t.ok(found, `${block}: ${meant}, not ${errors.join('\n')}`)
  }
})
