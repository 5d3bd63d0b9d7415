import t from 'tap'
import { type ControllerSession, SessionController } from '../../src/operator/controller.ts'

class ToySession implements ControllerSession {
  readonly watches = []
  readonly reason = 'the database is away'
  isClosed = false
  finish: () => void = () => {}

  close(): Promise<void> {
    this.isClosed = true
    return new Promise((resolve) => {
      this.finish = resolve
    })
  }
}

t.test('a controller has one session from begin to end', async (t) => {
  const sessions: ToySession[] = []
  const controller = new SessionController(() => {
    const session = new ToySession()
    sessions.push(session)
    return session
  })
  await controller.prepare()
  t.equal(controller.reason, '', 'none before it leads')
  controller.begin()
  controller.begin()
  t.equal(sessions.length, 1)
  t.equal(controller.reason, 'the database is away')
  let hasEnded = false
  void controller.end().then(() => (hasEnded = true))
  t.equal(sessions[0]?.isClosed, true)
  t.equal(controller.reason, '')
  await Promise.resolve()
  t.equal(hasEnded, false, 'its work still runs')
  sessions[0]?.finish()
  await controller.end()
  controller.begin()
  t.equal(sessions.length, 2, 'the next term has a session of its own')
})
