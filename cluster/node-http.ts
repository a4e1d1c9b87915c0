/**
 * Node's HTTP module without an import of it: an import reads every export, and one of them, WebSocket, loads a second
 * HTTP implementation (undici). That costs a process 3 to 6 MB, and Shale doesn't use it.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
