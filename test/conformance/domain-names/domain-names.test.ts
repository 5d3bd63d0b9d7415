import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments, stringify } from 'yaml'
import { ALLOWED_MS, DROPPED_MS, EgressNode, type Protocol } from '../../support/egress-node.ts'
import { needs, needsRoot } from '../../support/peer.ts'
import { root } from '../../support/server.ts'
import { until } from '../../support/until.ts'
import { type CaseResult, composeReport } from './report.ts'

// Long: it starts a server for each case.

/*
 * The conformance cases of NPEP-133 are data: README.md describes them. This file runs them on the node agent, with a
 * network namespace for each Pod.
 */

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly annotations?: { readonly apply?: string } }
  readonly status?: { readonly podIPs: readonly { readonly ip: string }[] }
}

interface Step {
  readonly pod?: string
  readonly expect?: string | readonly string[]
  readonly resolve?: string
  readonly type?: string
  readonly connect?: string
  readonly open?: string
  readonly port?: number
  readonly protocol?: Protocol
  readonly as?: string
  readonly echo?: string
  readonly apply?: string
  readonly delete?: string
  /** Seconds. */
  readonly within?: number
}

interface Case {
  readonly title: string
  readonly reference: string
  readonly steps: readonly Step[]
}

const HERE = join(root, 'test/conformance/domain-names')
const read = (file: string): string => readFileSync(join(HERE, file), 'utf8')
const objectsOf = (file: string): readonly Manifest[] =>
  parseAllDocuments(read(file)).map((one) => one.toJS())
const CASES = readdirSync(join(HERE, 'cases')).map((file) => {
  const [test, ...objects] = objectsOf(`cases/${file}`)
  return { file, test: test as unknown as Case, objects }
})

/** The rcodes of c-ares have other names. */
const RCODES: Readonly<Record<string, string>> = { ENOTFOUND: 'NXDOMAIN', ENODATA: 'NOERROR' }

/** A file for the report; undefined = none. */
const REPORT = process.env.SEXTANT_CONFORMANCE_REPORT

t.setTimeout(600_000)

/** What a step found, in the form of its `expect`. */
async function resultOf(node: EgressNode, step: Step): Promise<Step['expect']> {
  const { pod: name = '', port = 0, protocol = 'tcp', expect } = step
  const pod = node.pod(name)
  const timeoutMs = expect === 'allow' && step.within === undefined ? ALLOWED_MS : DROPPED_MS
  const verdict = (result: string): string =>
    result === 'open' ? 'allow' : result === 'dropped' ? 'deny' : result
  if (step.resolve !== undefined) {
    const { rcode, addresses } = await pod.resolve(step.resolve, step.type)
    if (rcode !== 'NOERROR') return RCODES[rcode] ?? rcode
    return typeof expect === 'string' ? `${addresses.length} addresses` : addresses
  }
  if (step.connect !== undefined)
    return verdict(await pod.connect({ address: step.connect, port, protocol }, timeoutMs))
  if (step.open !== undefined)
    return verdict(await pod.open(step.as ?? '', { address: step.open, port, protocol }))
  if (step.echo !== undefined) return verdict(await pod.echo(step.echo))
  throw new Error(`a step that does nothing: ${JSON.stringify(step)}`)
}

t.test('the page explains each field, and cases share nothing', async (t) => {
  const explained = new Set([...read('README.md').matchAll(/`(\w+)`/g)].map(([, word]) => word))
  const names = new Set<string>()
  for (const { file, test, objects } of CASES) {
    for (const field of [...Object.keys(test), ...test.steps.flatMap((step) => Object.keys(step))])
      t.ok(explained.has(field), `${file}: ${field}`)
    for (const { kind, metadata } of objects) {
      t.notOk(names.has(`${kind} ${metadata.name}`), `${file}: ${kind} ${metadata.name}`)
      names.add(`${kind} ${metadata.name}`)
    }
    for (const { pod } of test.steps) {
      const own = objects.map(({ metadata }) => metadata.name)
      t.ok(pod === undefined || own.includes(pod), `${file}: Pod ${pod}`)
    }
  }
})

t.test(
  'the domain names of NPEP-133',
  { ...needsRoot(), ...needs('ip', 'nft', 'conntrack') },
  async (t) => {
    const all = CASES.flatMap(({ objects }) => objects)
    const pods = all.filter(({ kind }) => kind === 'Pod')
    const first = all.filter(({ metadata }) => metadata.annotations?.apply !== 'later')
    const present = new Set([...objectsOf('dns.yaml'), ...first])
    const yaml = (): string => [...present].map((one) => `---\n${stringify(one)}`).join('')
    const addressesOf = ({ metadata, status }: Manifest) => [
      metadata.name,
      (status?.podIPs ?? []).map(({ ip }) => ip),
    ]
    const node = await EgressNode.start(t, {
      objects: yaml(),
      podAddresses: Object.fromEntries(pods.map(addressesOf)),
      zones: { 'example.com.': read('example.com.zone'), 'example.net.': read('example.net.zone') },
    })
    const change = (step: Step): void => {
      const name = step.apply ?? step.delete
      const object = all.find(({ metadata }) => metadata.name === name)!
      if (step.apply !== undefined) present.add(object)
      else present.delete(object)
      node.putObjects(yaml())
    }
    const results: CaseResult[] = []
    for (const { file, test, objects } of CASES) {
      // A step that cannot be done ends the case.
      let passed = false
      await t.test(`${file}: ${test.title}`, async (t) => {
        let failures = 0
        for (const step of test.steps) {
          if (step.apply !== undefined || step.delete !== undefined) {
            change(step)
            continue
          }
          let found: Step['expect'] = ''
          const isAsExpected = async (): Promise<boolean> => {
            found = await resultOf(node, step)
            return String(found) === String(step.expect)
          }
          if (step.within === undefined) await isAsExpected()
          else await until(isAsExpected, JSON.stringify(step), step.within * 1000).catch(() => {})
          if (!t.strictSame(found, step.expect, JSON.stringify(step))) failures++
        }
        passed = failures === 0
      })
      results.push({ file, passed, kinds: objects.map(({ kind }) => kind) })
    }
    if (REPORT !== undefined) {
      const of = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
      writeFileSync(REPORT, composeReport(results, of, new Date()))
    }
    t.comment(node.agent.output())
  },
)
