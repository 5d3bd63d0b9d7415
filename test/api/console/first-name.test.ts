import t from 'tap'
import { firstName } from '../../../src/api/console/client/views/map/first-name.ts'

const cases = [
  { names: '', first: undefined },
  { names: 'example.org.=MX,TXT *.example.org.=A', first: undefined },
  { names: 'b.example.org.=A a.example.org.=A', first: 'b.example.org. A' },
  { names: 'x.app.example.org.=A app.example.org.=CNAME', first: 'app.example.org. A' },
  { names: 'six.example.org.=AAAA,TXT', first: 'six.example.org. AAAA' },
] as const

for (const { names, first } of cases) {
  t.test(`the first map of ${names || 'no names'}`, async (t) => {
    const list = names.split(' ').filter(Boolean)
    const found = firstName(
      list.map((one) => {
        const [name = '', types = ''] = one.split('=')
        return { name, zone: 'example.org.', types: types.split(',') }
      }),
    )
    t.equal(found && `${found.name} ${found.type}`, first)
  })
}
