// How long the node agent takes to compile policies: all at once, and after one change.
//   npm run build && node bench/policies.mjs
// 5 000 Pods of 50 namespaces, 1 000 policies, a tenth of them for all namespaces.
import { PolicyCompiler } from '../dist/egress/policies/policy-compiler.js'
import { findPolicyKind } from '../dist/egress/policies/policy-kinds.js'

const PODS = 5000
const POLICIES = 1000
const NAMESPACES = 50
const CHANGES = 200

function pod(i, label) {
  const metadata = {
    namespace: `n${i % NAMESPACES}`,
    name: `p${i}`,
    uid: `u${i}`,
    labels: { app: label, pod: `p${i}` },
  }
  const podIP = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`
  return { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase: 'Running', podIP } }
}

function policy(i, name) {
  const isWide = i % 10 === 0
  const egress = [{ toFQDNs: [{ matchPattern: `*.${name}.example` }, { matchName: 'a.example' }] }]
  return {
    apiVersion: 'cilium.io/v2',
    kind: isWide ? 'CiliumClusterwideNetworkPolicy' : 'CiliumNetworkPolicy',
    metadata: { ...(isWide ? {} : { namespace: `n${i % NAMESPACES}` }), name: `c${i}` },
    spec: { endpointSelector: { matchLabels: { app: `app${i % 20}` } }, egress },
  }
}

const compiler = new PolicyCompiler()
const put = (object) => {
  compiler.put(findPolicyKind(object), object)
}

function time(what, count, run) {
  const startMs = performance.now()
  run()
  const takenMs = performance.now() - startMs
  console.log(`${what}: ${(takenMs / count).toFixed(2)} ms`)
}

time(`${PODS} Pods, then ${POLICIES} policies`, 1, () => {
  for (let i = 0; i < PODS; i++) put(pod(i, `app${i % 20}`))
  for (let i = 0; i < POLICIES; i++) put(policy(i, `n${i}`))
  console.log(`${compiler.compile().clients.length} clients`)
})
time('one Pod more', CHANGES, () => {
  for (let i = 0; i < CHANGES; i++) {
    put(pod(PODS + i, `app${i % 20}`))
    compiler.compile()
  }
})
time('one policy of a namespace changed', CHANGES, () => {
  for (let i = 0; i < CHANGES; i++) {
    put(policy(i * 5 + 1, `changed${i}`))
    compiler.compile()
  }
})
time('one policy of all namespaces changed', CHANGES, () => {
  for (let i = 0; i < CHANGES; i++) {
    put(policy((i * 10) % POLICIES, `changed${i}`))
    compiler.compile()
  }
})
