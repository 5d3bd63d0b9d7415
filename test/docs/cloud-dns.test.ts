import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import { EDGE_PAGE } from '../support/edge.ts'
import { scanFences } from '../support/page.ts'
import { run } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Records as a provider got them: `k-ns1.example.com 300 A 192.0.2.11`. */
const WANT = [
  'k-ns1.example.com 300 A 192.0.2.11',
  'k-ns2.example.com 300 A 192.0.2.12',
  'k.example.com 300 NS k-ns1.example.com',
  'k.example.com 300 NS k-ns2.example.com',
]
const ZONE = 'example.com'

/** Writes down the words that it is called with, as a line of JSON. */
const TOOL = `#!/usr/bin/env node
const { appendFileSync } = require('node:fs')
appendFileSync(process.env.CALLS, JSON.stringify(process.argv.slice(2)) + '\\n')`

/** The calls of `tool` that the page's commands come to in a shell, each as its words. */
async function callsOf(t: Test, tool: string): Promise<string[][]> {
  const page = readFileSync(join(root, EDGE_PAGE), 'utf8')
  const fence = scanFences(page).find(({ language, text }) => {
    return language === 'sh' && text.startsWith(`${tool} `)
  })
  const directory = temporaryDirectory(t)
  const calls = join(directory, 'calls')
  writeFileSync(join(directory, tool), TOOL)
  chmodSync(join(directory, tool), 0o755)
  const path = `${directory}${delimiter}${process.env.PATH}`
  const setting = [`PATH=${path}`, `CALLS=${calls}`, 'ZONE_ID=Z0']
  const { code, stderr } = await run('env', [...setting, 'sh', '-eu', '-c', fence?.text ?? 'false'])
  t.equal(code, 0, stderr)
  const lines = readFileSync(calls, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line))
}

/** The values of flags, `--name value` or `--name=value`, and the words that are neither. */
function scanCall(words: readonly string[]): { flags: Map<string, string>; rest: string[] } {
  const flags = new Map<string, string>()
  const rest: string[] = []
  for (let i = 0; i < words.length; i++) {
    const [, name = '', value] = /^(--?[a-z-]+)(?:=(.*))?$/.exec(words[i]!) ?? []
    if (name === '') rest.push(words[i]!)
    else flags.set(name, value ?? words[++i] ?? '')
  }
  return { flags, rest }
}

t.test('the change batch for Route 53', async (t) => {
  const [words = [], ...more] = await callsOf(t, 'aws')
  t.equal(more.length, 0, 'all at one stroke')
  const { flags, rest } = scanCall(words)
  t.strictSame(rest, ['route53', 'change-resource-record-sets'])
  t.equal(flags.get('--hosted-zone-id'), 'Z0')
  const { Changes } = JSON.parse(flags.get('--change-batch') ?? '')
  const records: string[] = []
  for (const { Action, ResourceRecordSet } of Changes) {
    t.equal(Action, 'UPSERT')
    const { Name, Type, TTL, ResourceRecords } = ResourceRecordSet
    for (const { Value } of ResourceRecords) records.push(`${Name} ${TTL} ${Type} ${Value}`)
  }
  t.strictSame(records, WANT)
})

t.test('the commands for Google Cloud DNS', async (t) => {
  const records: string[] = []
  for (const words of await callsOf(t, 'gcloud')) {
    const { flags, rest } = scanCall(words)
    const [name = '', ...none] = rest.slice(3)
    t.strictSame([...rest.slice(0, 3), ...none], ['dns', 'record-sets', 'create'])
    t.equal(flags.get('--zone'), 'example-com')
    const [ttl, type] = [flags.get('--ttl'), flags.get('--type')]
    const lists = flags.get('--rrdatas')?.split(',') ?? []
    for (const one of [name, ...(type === 'NS' ? lists : [])]) t.match(one, /\.$/, 'absolute')
    for (const data of lists) records.push(`${name} ${ttl} ${type} ${data}`)
  }
  t.strictSame(
    records.map((line) => line.replace(/\.(?= |$)/g, '')),
    WANT,
  )
})

t.test('the commands for Azure DNS', async (t) => {
  const records: string[] = []
  const ttls = new Map<string, string>()
  for (const words of await callsOf(t, 'az')) {
    const { flags, rest } = scanCall(words)
    const [type = '', verb = '', ...none] = rest.slice(3)
    t.strictSame([...rest.slice(0, 3), ...none], ['network', 'dns', 'record-set'])
    t.strictSame([flags.get('-g'), flags.get('-z')], ['dns', ZONE])
    const name = `${flags.get('-n')}.${ZONE}`
    // It is that of the record set, so the first to say it has its way.
    const ttl = ttls.get(name) ?? flags.get('--ttl') ?? '3600'
    ttls.set(name, ttl)
    if (verb === 'create') continue
    t.equal(verb, 'add-record')
    records.push(`${name} ${ttl} ${type.toUpperCase()} ${flags.get(type === 'a' ? '-a' : '-d')}`)
  }
  t.strictSame(records, WANT)
})
