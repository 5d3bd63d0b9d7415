import { listenTcp, type TcpListener } from '../../src/transport/tcp.ts'
import type { TcpLimits } from '../../src/transport/tcp-limits.ts'
import { TcpClient } from './client.ts'
import { Echo } from './echo.ts'

export async function start(
  limits: Partial<TcpLimits> = {},
  echo: Echo = new Echo(),
): Promise<{ echo: Echo; listener: TcpListener; client: TcpClient }> {
  const options = { host: '127.0.0.1', port: 0, handler: echo }
  const listener = await listenTcp({
    ...options,
    limits: { messageOctetsMin: 1, messageOctetsMax: 65_535, ...limits },
  })
  return { echo, listener, client: await TcpClient.connect(listener.port) }
}

export function message(wish: number, text = ''): Buffer {
  return Buffer.concat([Buffer.from([wish]), Buffer.from(text)])
}
