import t from 'tap'
import { chooseZone } from '../../../src/operator/provider/zone-choice.ts'

t.test('a record goes to the longest zone that ends its host', (t) => {
  const zones = ['example.com', 'k.example.com', 'co.uk', 'test.co.uk', 'internal']
  const table = [
    { given: 'app.k.example.com', want: { zone: 'k.example.com' } },
    { given: 'k.example.com', want: { zone: 'k.example.com' } },
    { given: 'badk.example.com', want: { zone: 'example.com' } },
    { given: 'a.b.c.example.com', want: { zone: 'example.com' } },
    { given: 'a.test.co.uk', want: { zone: 'test.co.uk' } },
    { given: 'pb.com', want: { problem: 'no zone for host: pb.com' } },
    { given: 'notexample.com', want: { problem: 'no zone for host: notexample.com' } },
    { given: 'db.internal', want: { zone: 'internal' } },
    { given: '', want: { problem: 'no zone for host: ' } },
  ]
  for (const { given, want } of table) t.strictSame(chooseZone(given, zones), want, given)
  t.end()
})

t.test('a zone that the Secret names twice is not chosen, a longer one beside it is', (t) => {
  const zones = ['example.com', 'k.example.com', 'example.com']
  t.strictSame(chooseZone('k.example.com', zones), { zone: 'k.example.com' })
  t.strictSame(chooseZone('a.example.com', zones), {
    problem: 'multiple zones found for host: a.example.com (example.com)',
  })
  t.end()
})
