#!/usr/bin/env node

// The plug-in of kubectl: `kubectl sextant status`.
const { main } = await import('./main.ts')
await main(['kubectl', ...process.argv.slice(2)])
