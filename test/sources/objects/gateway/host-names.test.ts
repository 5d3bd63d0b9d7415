import fc from 'fast-check'
import t from 'tap'
import { intersectHosts, scanHostName } from '../../../../src/sources/objects/gateway/host-names.ts'

const SCANNED: readonly { text: string; want: string | undefined }[] = [
  { text: '', want: '' },
  { text: 'Shop.Example.COM', want: 'shop.example.com' },
  { text: 'shop.example.com.', want: 'shop.example.com' },
  { text: '*.example.com', want: '*.example.com' },
  { text: '*', want: undefined },
  { text: '*.', want: undefined },
  { text: '.', want: undefined },
  { text: 'a.*.example.com', want: undefined },
  { text: '**.example.com', want: undefined },
  { text: '192.0.2.1', want: undefined },
  { text: '2001:db8::1', want: undefined },
  { text: 'a..example.com', want: undefined },
  { text: '-a.example.com', want: undefined },
  { text: 'a_b.example.com', want: undefined },
  { text: 'münchen.example', want: undefined },
  { text: `${'a'.repeat(64)}.example`, want: undefined },
  { text: `${'a'.repeat(63)}.example`, want: `${'a'.repeat(63)}.example` },
  { text: `${'a.'.repeat(126)}ab`, want: undefined },
]

t.test('host names are read in one form', async (t) => {
  for (const { text, want } of SCANNED) t.equal(scanHostName(text), want, JSON.stringify(text))
})

const LABELS = ['a', 'b', 'ab']
const NAMES = LABELS.flatMap((x) => [
  x,
  ...LABELS.flatMap((y) => [`${y}.${x}`, ...LABELS.map((z) => `${z}.${y}.${x}`)]),
])

/** The names of at most three labels that a host name of a listener or a route stands for, by comparing labels. */
function namesOf(host: string): string {
  const wanted = host.split('.')
  const isIn = (name: string): boolean => {
    if (host === '') return true
    const labels = name.split('.')
    if (wanted[0] !== '*') return name === host
    const rest = wanted.slice(1)
    return labels.length > rest.length && rest.join('.') === labels.slice(-rest.length).join('.')
  }
  return NAMES.filter(isIn).join(' ')
}

t.test('the intersection of two host names has the names of both', async () => {
  const label = fc.constantFrom(...LABELS)
  const plain = fc.array(label, { minLength: 1, maxLength: 2 }).map((labels) => labels.join('.'))
  const host = fc.oneof(
    fc.constant(''),
    plain,
    plain.map((name) => `*.${name}`),
  )
  fc.assert(
    fc.property(host, host, (a, b) => {
      const both = namesOf(a)
        .split(' ')
        .filter((name) => namesOf(b).split(' ').includes(name))
      const found = intersectHosts(a, b)
      return (
        (found === undefined ? '' : namesOf(found)) === both.join(' ') &&
        found === intersectHosts(b, a)
      )
    }),
    { numRuns: 2000 },
  )
})
