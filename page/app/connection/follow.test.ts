import { expect, test } from 'vitest';
import { eventReader } from './follow.ts';

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
