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
