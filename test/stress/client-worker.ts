import { parentPort, workerData } from 'node:worker_threads'
import { type Board, Sign, StressClient } from './client.ts'

/* Asks until nothing changes any more, then until every thread has the last versions; posts a report. */

const SOCKETS = 12
const SWEEP_MS_MAX = 120_000

const { port, board } = workerData as { port: number; board: Board }
const client = new StressClient(port, SOCKETS, board)
parentPort!.postMessage('ready')
while (Atomics.load(board.signs, Sign.Done) === 0) {
  if (client.turn() === 0) Atomics.wait(board.signs, Sign.Done, 0, 1)
}
const deadlineMs = performance.now() + SWEEP_MS_MAX
let behind = client.sweep()
while (behind > 0 && performance.now() < deadlineMs) behind = client.sweep()
client.close()
parentPort!.postMessage({ ...client.report, behind })
