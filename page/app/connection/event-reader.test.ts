import { expect, test } from 'vitest';
import { eventReader } from './event-reader.ts';

test('events are returned when they are complete, wherever the text is cut, and heartbeats are ignored', () => {
  const text = 'event: snapshot\ndata: {"a":1}\n\n: alive\n\nevent: patch\ndata: {}\n\n';
  for (let cut = 0; cut <= text.length; cut += 1) {
    const read = eventReader();
    expect([...read(text.slice(0, cut)), ...read(text.slice(cut))]).toEqual([
      { name: 'snapshot', data: '{"a":1}' },
      { name: 'patch', data: '{}' },
    ]);
  }
});

test.each([
  [
    'data: {"a":"x\u2028y\u2029z\u0085\v\f"}\n\n',
    [{ name: 'message', data: '{"a":"x\u2028y\u2029z\u0085\v\f"}' }],
  ],
  [
    'event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r',
    [
      { name: 'a', data: '1' },
      { name: 'b', data: '2' },
    ],
  ],
  ['data:1\ndata: 2\ndata\n\n', [{ name: 'message', data: '1\n2\n' }]],
  ['event: a\n\ndata: 1\n\n', [{ name: 'message', data: '1' }]],
  [': data: 1\nid: 4\nretry: 5\n\n', []],
  ['data: 1', []],
])('%j is read as the standard says, wherever it is cut', (text, events) => {
  for (let cut = 0; cut <= text.length; cut += 1) {
    const read = eventReader();
    expect([...read(text.slice(0, cut)), ...read(text.slice(cut))]).toEqual(events);
  }
});
