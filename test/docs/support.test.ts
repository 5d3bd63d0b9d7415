import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { KUBERNETES_ENDS } from '../support/kubernetes-ends.ts'
import { root } from '../support/server.ts'

const PAGE = 'docs/reference/support.md'
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const matched = (path: string, pattern: RegExp) => pattern.exec(read(path))?.[1]

/** The cells of a row of the table, by its first cell. */
const rows = new Map(
  [...read(PAGE).matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map((found) => [
    found[1]!,
    found.slice(2, 4) as [versions: string, tests: string],
  ]),
)

t.test(`${PAGE}: the versions are those of the tests`, (t) => {
  const full = matched('.ci/run', /^FULL=(\d+)/m)
  const parts = matched('.ci/run', /PARTS=\(([\d ]+)\)/)!.split(' ')
  const [nodes, nodeTests] = rows.get('Node.js')!
  t.equal(nodes, [...parts, full].join(', '))
  t.ok(nodeTests.startsWith(`${full}, which`))
  t.equal(matched('.ci/release/program.mjs', /NODE_MAJOR = '(\d+)'/), full)
  t.equal(matched('package.json', /"node": ">=(\d+)"/), parts[0])

  const [kubernetes, kubernetesTests] = rows.get('Kubernetes')!
  const [oldest, newest] = KUBERNETES_ENDS.map((version) => version.replace(/\.\d+$/, ''))
  t.equal(kubernetes, `${oldest} to ${newest}`)
  const run = matched('test/cluster/go.mod', /k8s\.io\/kubernetes v(1\.\d+)/)
  t.ok(kubernetesTests.startsWith(`${run}: an API server. ${oldest} and ${newest}: `))
  t.equal(matched('deploy/chart/Chart.yaml', /^kubeVersion: ">=(.*)\.0-0"$/m), oldest)

  const [first] = readdirSync(join(root, 'test/crds')).filter((name) => /^\d/.test(name))
  t.equal(rows.get('`kuadrant.io`')![0], `\`v1alpha1\` of release ${first} or later`)
  t.end()
})
