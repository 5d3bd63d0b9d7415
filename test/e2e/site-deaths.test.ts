import t from 'tap'
import { pairOf, Site } from './sites.ts'

// Long: it starts several servers.

t.test('each site logs once what happens when a site dies', async (t) => {
  const pair = await pairOf()
  const east = await Site.start(t, pair.east)
  const west = await Site.start(t, pair.west)
  for (const site of [east, west]) {
    for (const dead of ['east', 'west']) {
      await site.prints(new RegExp(`if ${dead} dies: \\S+: \\S+ is kept for 24 h: no health check`))
    }
  }
  west.reload()
  await west.prints(/Reloading complete/)
  await west.kill()
  t.equal(west.output.split('if east dies: ').length, 2, west.output)
})
