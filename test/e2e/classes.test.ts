import t from 'tap'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

const COREFILE = `k.example.com:{PORT} .:{PORT} {
    bind 127.0.0.1
    chaos secret
    any
    local
    file db
}
`
const ZONE = `@ 60 IN SOA ns hostmaster 1 60 60 60 60
@ 60 IN NS ns
app.k.example.com. 60 IN A 192.0.2.1
`

t.test(
  'in class CH template answers, and what it does not answer is refused',
  needs('dig'),
  async (t) => {
    const corefile = `example.com:{PORT} bind.:{PORT} {
    bind 127.0.0.1
    chaos secret
    template CH TXT test.bind {
        answer "test.bind. 60 CH TXT answered"
    }
    file db example.com
}
server:{PORT} {
    bind 127.0.0.1
    template ANY ANY version.server {
        rcode NXDOMAIN
    }
    file db example.com
}
`
    const db = '@ 60 IN SOA ns hostmaster 1 60 60 60 60\n@ 60 IN NS ns\nns 60 IN A 192.0.2.1\n'
    const server = await startServer(t, { corefile, files: { db } })
    const table = [
      { question: 'version.bind CH TXT', status: 'NOERROR', answers: 1 },
      { question: 'test.bind CH TXT', status: 'NOERROR', answers: 1 },
      { question: 'ns.example.com IN A', status: 'NOERROR', answers: 1 },
      { question: 'ns.example.com CH A', status: 'REFUSED' },
      { question: 'test.bind CH A', status: 'REFUSED' },
      { question: 'test.bind HS TXT', status: 'REFUSED' },
      { question: 'version.server CH TXT', status: 'NXDOMAIN' },
      { question: 'id.server CH TXT', status: 'REFUSED' },
    ]
    for (const { question, status, answers = 0 } of table) {
      const reply = await ask('dig', server.port, question.split(' '))
      t.match(reply, { status, answer: { length: answers } }, question)
    }
  },
)

t.test('in class CH only chaos answers', needs('dig'), async (t) => {
  const server = await startServer(t, { corefile: COREFILE, files: { db: ZONE } })
  const table = [
    { question: 'version.bind CH TXT', status: 'NOERROR', answers: 1 },
    { question: 'app.k.example.com IN A', status: 'NOERROR', answers: 1 },
    { question: 'app.k.example.com CH A', status: 'REFUSED' },
    { question: 'app.k.example.com CH ANY', status: 'REFUSED' },
    { question: 'version.bind CH A', status: 'REFUSED' },
    { question: 'foo.bind CH TXT', status: 'REFUSED' },
    { question: 'localhost CH A', status: 'REFUSED' },
    { question: 'app.k.example.com HS A', status: 'REFUSED' },
    { question: 'app.k.example.com -c ANY A', status: 'REFUSED' },
  ]
  for (const { question, status, answers = 0 } of table) {
    const reply = await ask('dig', server.port, question.split(' '))
    t.match(reply, { status, answer: { length: answers } }, question)
  }
})
