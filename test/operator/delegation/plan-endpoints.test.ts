import fc from 'fast-check'
import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import {
  type DesiredEndpoints,
  planEndpoints,
} from '../../../src/operator/delegation/plan-endpoints.ts'
import { readSpecEndpoints, type SpecEndpoint } from '../../../src/operator/record/spec-endpoint.ts'

const HOST = 'example.com'

/** `name TYPE target[,target] [ttl=] [id=] [weight=]`, names below the host, `@` = the host. */
function endpoint(text: string): ApiObject {
  const [name, recordType, targets, ...pairs] = text.split(' ')
  const options = new Map(pairs.map((pair) => pair.split('=') as [string, string]))
  const weight = options.get('weight')
  return {
    dnsName: name === '@' ? HOST : `${name}.${HOST}`,
    recordType: recordType!,
    targets: targets!.split(','),
    recordTTL: Number(options.get('ttl') ?? 60),
    ...(options.has('id') ? { setIdentifier: options.get('id')! } : {}),
    ...(weight === undefined ? {} : { providerSpecific: [{ name: 'weight', value: weight }] }),
  }
}

/** The reverse, with `owners` at the end; notes of the registry are left out. */
function print(object: ApiObject): string {
  const { dnsName, recordType, targets, recordTTL, setIdentifier, labels, providerSpecific } =
    object
  const name = dnsName === HOST ? '@' : String(dnsName).slice(0, -HOST.length - 1)
  const words = [name, recordType, (targets as string[]).join()]
  if (recordTTL !== 60) words.push(`ttl=${recordTTL}`)
  if (setIdentifier !== undefined) words.push(`id=${setIdentifier}`)
  const [property] = (providerSpecific ?? []) as { value: string }[]
  if (property !== undefined) words.push(`weight=${property.value}`)
  const { owner } = (labels ?? {}) as { owner?: string }
  return [...words, ...(owner === undefined ? [] : [`of ${owner}`])].join(' ')
}

function served(endpoints: readonly ApiObject[]): string[] {
  return endpoints.filter((e) => e.recordType !== 'TXT').map(print)
}

function notes(endpoints: readonly ApiObject[]): number {
  return endpoints.filter((e) => e.recordType === 'TXT').length
}

/** A record that several owners write into, one after the other. */
class Shared {
  endpoints: readonly ApiObject[] = []
  writes = 0
  readonly previous = new Map<string, readonly SpecEndpoint[]>()

  write(owner: string, texts: readonly string[], rootHost = HOST) {
    const desired = readSpecEndpoints(texts.map(endpoint))
    const wish: DesiredEndpoints = {
      owner,
      group: '',
      cluster: '',
      rootHost,
      desired,
      previous: this.previous.get(owner) ?? [],
    }
    const plan = planEndpoints(readSpecEndpoints(this.endpoints), wish)
    if (plan.isChanged) this.writes++
    this.endpoints = plan.endpoints
    if (plan.conflicts.length === 0) this.previous.set(owner, desired)
    return plan
  }
}

/** What is there, who writes what into it, and what comes of it. After upstream's tests of its plan. */
interface Case {
  readonly name: string
  readonly before: readonly (readonly [owner: string, ...texts: string[]])[]
  readonly write: readonly [owner: string, ...texts: string[]]
  readonly want: readonly string[]
  readonly conflict?: RegExp
}

const [O1, O2] = ['owner111', 'owner222']
const CASES: readonly Case[] = [
  {
    name: 'an owner creates',
    before: [],
    write: [O1, 'foo A 1.1.1.1'],
    want: [`foo A 1.1.1.1 of ${O1}`],
  },
  {
    name: 'AAAA is created',
    before: [],
    write: [O1, 'foo AAAA 2001:db8::1'],
    want: [`foo AAAA 2001:db8::1 of ${O1}`],
  },
  {
    name: 'both families are created',
    before: [],
    write: [O1, 'ds A 1.1.1.1', 'ds AAAA 2001:db8::1'],
    want: [`ds A 1.1.1.1 of ${O1}`, `ds AAAA 2001:db8::1 of ${O1}`],
  },
  {
    name: 'both families are deleted',
    before: [[O1, 'ds A 1.1.1.1', 'ds AAAA 2001:db8::1']],
    write: [O1],
    want: [],
  },
  {
    name: 'one of two families goes',
    before: [[O1, 'ds A 1.1.1.1', 'ds AAAA 2001:db8::1']],
    write: [O1, 'ds A 1.1.1.1'],
    want: [`ds A 1.1.1.1 of ${O1}`],
  },
  {
    name: 'targets of endpoints with set identifiers are not united',
    before: [[O1, 'foo A 1.1.1.1 id=1']],
    write: [O2, 'foo A 2.2.2.2 id=2'],
    want: [`foo A 1.1.1.1 id=1 of ${O1}`, `foo A 2.2.2.2 id=2 of ${O2}`],
  },
  {
    name: 'a second owner adds its targets',
    before: [
      [O1, 'foo A 1.1.1.1'],
      [O2, 'bar A 3.3.3.3'],
    ],
    write: [O2, 'foo A 2.2.2.2', 'bar A 3.3.3.3'],
    want: [`bar A 3.3.3.3 of ${O2}`, `foo A 1.1.1.1,2.2.2.2 of ${O1}&&${O2}`],
  },
  {
    name: 'an owner changes its target',
    before: [[O2, 'bar A 3.3.3.3']],
    write: [O2, 'bar A 4.4.4.4'],
    want: [`bar A 4.4.4.4 of ${O2}`],
  },
  {
    name: 'an owner changes a target that another one has too: it stays',
    before: [
      [O1, 'bar A 3.3.3.3'],
      [O2, 'bar A 3.3.3.3'],
    ],
    write: [O2, 'bar A 4.4.4.4'],
    want: [`bar A 3.3.3.3,4.4.4.4 of ${O1}&&${O2}`],
  },
  {
    name: 'A does not become CNAME while another owner has it',
    before: [[O1, 'foo A 1.1.1.1']],
    write: [O2, 'foo CNAME v1.example.net'],
    want: [`foo A 1.1.1.1 of ${O1}`],
    conflict:
      /^record type conflict, cannot update endpoint 'foo.example.com' with record type 'CNAME' when endpoint already exists with record type 'A'$/,
  },
  {
    name: 'CNAME does not become A while another owner has it',
    before: [[O1, 'foo CNAME v1.example.net']],
    write: [O2, 'foo A 1.1.1.1'],
    want: [`foo CNAME v1.example.net of ${O1}`],
    conflict: /^record type conflict, .* with record type 'A' when .* with record type 'CNAME'$/,
  },
  {
    name: 'an owner alone may change the type',
    before: [[O1, 'foo A 1.1.1.1']],
    write: [O1, 'foo CNAME v1.example.net'],
    want: [`foo CNAME v1.example.net of ${O1}`],
  },
  {
    name: 'an owner changes what it has by a set identifier',
    before: [[O1, 'foo A 1.1.1.1 id=1']],
    write: [O1, 'foo A 2.2.2.2 id=1'],
    want: [`foo A 2.2.2.2 id=1 of ${O1}`],
  },
  {
    name: 'only endpoints without other owners are deleted',
    before: [
      [O1, 'bar A 3.3.3.3', 'foo A 1.1.1.1'],
      [O2, 'baz A 4.4.4.4', 'foo A 2.2.2.2'],
    ],
    write: [O2],
    want: [`bar A 3.3.3.3 of ${O1}`, `foo A 1.1.1.1 of ${O1}`],
  },
  {
    name: 'of two owners with one address the second goes',
    before: [
      [O1, 'foo A 1.1.1.1'],
      [O2, 'foo A 1.1.1.1'],
    ],
    write: [O2],
    want: [`foo A 1.1.1.1 of ${O1}`],
  },
  {
    name: 'CNAMEs of two owners: the first target of all is served',
    before: [[O1, 'foo CNAME v2.example.net']],
    write: [O2, 'foo CNAME v1.example.net'],
    want: [`foo CNAME v1.example.net of ${O1}&&${O2}`],
    conflict:
      /^in spec.endpoints, .* has the CNAME of one owner only: 'v1.example.net'; keep one CNAME$/,
  },
  {
    name: 'the CNAME of the owner that stays comes back',
    before: [
      [O1, 'foo CNAME v2.example.net'],
      [O2, 'foo CNAME v1.example.net'],
    ],
    write: [O2],
    want: [`foo CNAME v2.example.net of ${O1}`],
  },
  {
    name: 'a CNAME to a name of the host that does not exist is refused',
    before: [[O1, 'x CNAME lb.example.net']],
    write: [O2, 'foo CNAME bar.example.com'],
    want: [`x CNAME lb.example.net of ${O1}`],
    conflict:
      /^invalid target, endpoint 'foo.example.com' has target 'bar.example.com' that matches the root host filters '\[example.com\]' but does not exist in the list of local or remote endpoints$/,
  },
  {
    name: 'one to a name of another owner is not',
    before: [[O1, 'bar CNAME lb.example.net']],
    write: [O2, 'foo CNAME bar.example.com'],
    want: [`bar CNAME lb.example.net of ${O1}`, `foo CNAME bar.example.com of ${O2}`],
  },
  {
    name: 'nor one to a name that a wildcard answers for',
    before: [[O1, '*.bar CNAME lb.example.net']],
    write: [O2, 'foo CNAME a.b.bar.example.com'],
    want: [`*.bar CNAME lb.example.net of ${O1}`, `foo CNAME a.b.bar.example.com of ${O2}`],
  },
  {
    name: 'the lowest TTL is served',
    before: [[O1, 'foo A 1.1.1.1 ttl=120']],
    write: [O2, 'foo A 1.1.1.1'],
    want: [`foo A 1.1.1.1 of ${O1}&&${O2}`],
  },
  {
    name: 'with the owner of the lowest TTL it goes',
    before: [
      [O1, 'foo A 1.1.1.1 ttl=120'],
      [O2, 'foo A 1.1.1.1'],
    ],
    write: [O2],
    want: [`foo A 1.1.1.1 ttl=120 of ${O1}`],
  },
  {
    name: 'of one set identifier the lowest owner has its way',
    before: [[O1, 'foo A 1.1.1.1 id=x weight=1']],
    write: [O2, 'foo A 1.1.1.1 id=x weight=2'],
    want: [`foo A 1.1.1.1 id=x weight=1 of ${O1}&&${O2}`],
    conflict:
      /endpoint 'foo.example.com' with set identifier 'x' has the values of owner 'owner111'; give each owner/,
  },
  {
    name: 'and has it also when it comes later',
    before: [[O2, 'foo A 1.1.1.1 id=x weight=2']],
    write: [O1, 'foo A 1.1.1.1 id=x weight=1'],
    want: [`foo A 1.1.1.1 id=x weight=1 of ${O1}&&${O2}`],
  },
  {
    name: 'name servers are united',
    before: [[O1, '@ NS ns1.example.com', 'ns1 A 1.1.1.1']],
    write: [O2, '@ NS ns2.example.com', 'ns2 A 2.2.2.2'],
    want: [
      `@ NS ns1.example.com,ns2.example.com of ${O1}&&${O2}`,
      `ns1 A 1.1.1.1 of ${O1}`,
      `ns2 A 2.2.2.2 of ${O2}`,
    ],
  },
  {
    name: 'every type is kept',
    before: [],
    write: [O1, '@ MX 10_mx.example.net', '@ HTTPS 1_.'],
    want: [`@ HTTPS 1_. of ${O1}`, `@ MX 10_mx.example.net of ${O1}`],
  },
]

t.test('the record that its owners produce', async (t) => {
  for (const { name, before, write, want, conflict } of CASES) {
    const shared = new Shared()
    for (const [owner, ...texts] of before) shared.write(owner, texts)
    const plan = shared.write(write[0], write.slice(1))
    const texts = [...plan.conflicts, ...plan.disputes]
    if (conflict === undefined) t.strictSame(texts, [], name)
    else t.match(texts, [conflict], name)
    t.strictSame(served(plan.endpoints), want, name)
  }
})

t.test('endpoints without an owner are kept, and get none', async (t) => {
  const current = [endpoint('foo A 1.1.1.1')]
  const wish = { owner: O1, group: '', cluster: '', rootHost: HOST, previous: [] }
  const plan = planEndpoints(readSpecEndpoints(current), {
    ...wish,
    desired: readSpecEndpoints([endpoint('foo A 2.2.2.2')]),
  })
  t.strictSame(plan.conflicts, [
    "owner conflict, cannot update endpoint 'foo.example.com' with owner when existing endpoint is not owned",
  ])
  t.notOk(plan.isChanged)
  t.strictSame(plan.endpoints, current)
  t.notOk(planEndpoints(readSpecEndpoints(current), { ...wish, desired: [] }).isChanged)
})

/** As upstream writes them: ownership records with only the owner. */
function upstream(owner: string, hash: string, text: string): ApiObject[] {
  const object = endpoint(text)
  const note = {
    dnsName: `kuadrant-${hash}-${String(object.recordType).toLowerCase()}-${String(object.dnsName)}`,
    recordType: 'TXT',
    targets: [`"heritage=external-dns,external-dns/owner=${owner},external-dns/version=1"`],
    labels: { ownedRecord: object.dnsName! },
  }
  return [object, note]
}

t.test('ownership records of another operator are kept unchanged', async (t) => {
  const current = upstream('owner1', '2tqs20a7', 'foo A 1.1.1.1')
  const wish = { owner: O2, group: '', cluster: '', rootHost: HOST, previous: [] }
  const { endpoints, conflicts } = planEndpoints(readSpecEndpoints(current), {
    ...wish,
    desired: readSpecEndpoints([endpoint('foo A 2.2.2.2')]),
  })
  t.strictSame(conflicts, [])
  t.strictSame(served(endpoints), [`foo A 1.1.1.1,2.2.2.2 of owner1&&${O2}`])
  t.ok(endpoints.includes(current[1]!))
  const gone = planEndpoints(readSpecEndpoints(endpoints), { ...wish, desired: [] })
  t.strictSame(served(gone.endpoints), ['foo A 1.1.1.1 of owner1'])
  t.strictSame(gone.endpoints[1], current[1])
  const first = {
    ...wish,
    owner: 'owner1',
    desired: [],
    previous: readSpecEndpoints([endpoint('foo A 1.1.1.1')]),
  }
  t.strictSame(served(planEndpoints(readSpecEndpoints(endpoints), first).endpoints), [
    `foo A 2.2.2.2 of ${O2}`,
  ])
})

t.test('an old note of several owners loses the one that goes', async (t) => {
  const note = {
    dnsName: 'kuadrant-a-foo.example.com',
    recordType: 'TXT',
    targets: ['"heritage=external-dns,external-dns/owner=o1&&o2"'],
  }
  const current = [endpoint('foo A 1.1.1.1,2.2.2.2'), note]
  const wish = {
    owner: 'o2',
    group: '',
    cluster: '',
    rootHost: HOST,
    previous: readSpecEndpoints([endpoint('foo A 2.2.2.2')]),
  }
  const plan = planEndpoints(readSpecEndpoints(current), { ...wish, desired: [] })
  t.strictSame(served(plan.endpoints), ['foo A 1.1.1.1 of o1'])
  t.match(plan.endpoints[1]!.targets, [
    '"heritage=external-dns,external-dns/owner=o1,external-dns/version=1"',
  ])
})

t.test('the plan returns the owners of the host itself', async (t) => {
  const shared = new Shared()
  t.strictSame(shared.write(O1, ['@ A 1.1.1.1', 'foo A 1.1.1.1']).owners, [O1])
  t.strictSame(shared.write(O2, ['* A 2.2.2.2'], '*.example.com').owners, [O1, O2])
  t.strictSame(shared.write('o3', ['foo A 3.3.3.3']).owners, [O1, O2])
})

t.test('text of objects is on one line of a message', async (t) => {
  const current = [{ ...endpoint('foo A 1.1.1.1'), dnsName: 'foo\n.example.com' }]
  const desired = readSpecEndpoints(current)
  const wish = { owner: O1, group: '', cluster: '', rootHost: HOST, previous: [], desired }
  t.match(planEndpoints(readSpecEndpoints(current), wish).conflicts, [/'foo\\n.example.com'/])
})

const TEXTS = fc
  .record({
    name: fc.constantFrom('@', 'foo', '*'),
    type: fc.constantFrom('A', 'AAAA', 'NS', 'CNAME'),
    targets: fc.subarray(['t1.example.net', 't2.example.net', 't3.example.net'], { minLength: 1 }),
    ttl: fc.constantFrom(60, 300),
    id: fc.constantFrom('', ' id=x', ' id=y weight=1', ' id=y weight=2'),
  })
  .map(({ name, type, targets, ttl, id }) => {
    const list = type === 'CNAME' ? targets.slice(0, 1) : targets
    return `${name} ${type} ${list.join()} ttl=${ttl}${id}`
  })
const WISHES = fc.array(
  fc.record({
    owner: fc.constantFrom('o1', 'o2', 'o3'),
    texts: fc.uniqueArray(TEXTS, { maxLength: 4 }),
  }),
  { maxLength: 6 },
)

t.test('owners that write in turn reach a stable state, and leave nothing behind', async (t) => {
  const property = fc.property(WISHES, (wishes) => {
    const shared = new Shared()
    const last = new Map<string, readonly string[]>()
    for (const { owner, texts } of wishes) {
      shared.write(owner, texts)
      last.set(owner, texts)
    }
    for (let round = 0; round < 3; round++) {
      for (const [owner, texts] of last) shared.write(owner, texts)
    }
    const { writes, endpoints } = shared
    for (const [owner, texts] of last) shared.write(owner, texts)
    t.equal(shared.writes, writes, 'no owner writes again once all have written')
    t.strictSame(shared.endpoints, endpoints)
    for (const owner of last.keys()) shared.write(owner, [])
    t.strictSame(shared.endpoints, [])
  })
  fc.assert(property, { seed: 4, numRuns: 200 })
})

t.test('without conflicts the order of owners does not matter', async (t) => {
  const plain = TEXTS.filter((text) => !text.includes('CNAME') && !text.includes('id='))
  const property = fc.property(
    fc.uniqueArray(plain, { maxLength: 4 }),
    fc.uniqueArray(plain, { maxLength: 4 }),
    (a, b) => {
      const [one, other] = [new Shared(), new Shared()]
      one.write('o1', a)
      one.write('o2', b)
      other.write('o2', b)
      other.write('o1', a)
      t.strictSame(served(one.endpoints), served(other.endpoints))
      t.equal(notes(one.endpoints), notes(other.endpoints))
    },
  )
  fc.assert(property, { seed: 4, numRuns: 200 })
})
