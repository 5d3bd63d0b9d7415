import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'

t.test('whole buckets are added up and printed cumulated', async (t) => {
  const metrics = new MetricsRegistry()
  const sizes = metrics.bulkHistogram('sizes_bytes', 'Sizes.', [100, 200])
  t.equal(metrics.bulkHistogram('sizes_bytes', 'Sizes.', [100, 200]), sizes, 'made once')
  sizes.add({ proto: 'udp' }, [1, 2, 3], 1000)
  sizes.add({ proto: 'udp' }, Float64Array.of(1, 0, 0), 50)
  sizes.add({ proto: 'tcp' }, [0, 0, 1], 900)
  const text = await metrics.print()
  t.match(text, '# TYPE sizes_bytes histogram')
  for (const line of [
    'sizes_bytes_bucket{proto="udp",le="100"} 2',
    'sizes_bytes_bucket{proto="udp",le="200"} 4',
    'sizes_bytes_bucket{proto="udp",le="+Inf"} 7',
    'sizes_bytes_sum{proto="udp"} 1050',
    'sizes_bytes_count{proto="udp"} 7',
    'sizes_bytes_count{proto="tcp"} 1',
  ]) {
    t.ok(text.split('\n').includes(line), line)
  }
})
