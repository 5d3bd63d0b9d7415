import t from 'tap'
import { statusOfZones } from '../../../src/publish/zone/zone-status.ts'
import type { PublishedZones } from '../../../src/publish/zone/zones.ts'
import type { StoredRecord } from '../../../src/records/record-source.ts'
import { added, zone } from '../record-zone-stage.ts'

t.test('the status says why endpoints are down', (t) => {
  const { records, health } = zone()
  const endpoints = [
    'a.k.example.com A 192.0.2.1 id=one',
    'b.k.example.com A 192.0.2.1,192.0.2.3 id=two',
    'c.k.example.com A 192.0.2.2 id=three',
  ]
  const [change] = added({ endpoints })
  const record = change!.after as StoredRecord
  health.put(record.key, ['192.0.2.1', '192.0.2.2'])
  records.apply([change!])
  const published = {
    zones: [{ records, text: 'k.example.com.', serial: 1 }],
    findRecord: () => record,
  } as unknown as PublishedZones
  const status = statusOfZones(published, 'records', (key, target) => {
    return key === record.key && target === '192.0.2.1' ? '3 checks in a row failed' : ''
  })
  t.strictSame(
    status.endpoints.map(({ state, detail }) => [state, detail]),
    [
      ['down', '3 checks in a row failed'],
      ['partly down', 'out: 192.0.2.1; 3 checks in a row failed'],
      ['down', 'the status of a DNSHealthCheckProbe reports it as unhealthy'],
    ],
  )
  t.end()
})
