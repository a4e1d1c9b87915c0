import { expect, test } from 'vitest';
import { stableConversation } from './conversation.ts';
import type { Exchange } from './recording-extension.ts';

function exchange(machineSet: string, machine: string, token: string): Exchange {
  const request = {
    machineSet,
    machine,
    token,
    hash: `123-${machineSet.slice(-5)}`,
    server: '127.0.0.1:43210',
  };
  return { hook: 'UpdateMachine', path: '/', headers: {}, request, response: {} };
}

test('two runs in which the same was said are recorded alike', () => {
  const one = [exchange('pool-wrr2h', 'pool-wrr2h-82cdt', 'aaaaaa.0123456789abcdef')];
  const two = [exchange('pool-9z2nl', 'pool-9z2nl-jqwwj', 'bbbbbb.aaaabbbbccccdddd')];
  expect(stableConversation(one, 'pool')).toEqual(stableConversation(two, 'pool'));
  expect(stableConversation(one, 'pool')[0]?.request).toEqual({
    machineSet: 'pool-name1',
    machine: 'pool-name1-name2',
    token: 'abcdef.0123456789abcdef',
    hash: '123-name1',
    server: '127.0.0.1:6443',
  });
});

test('what is said again at once is recorded once', () => {
  const said = exchange('pool-wrr2h', 'pool-wrr2h-82cdt', 'aaaaaa.0123456789abcdef');
  expect(stableConversation([said, said], 'pool')).toHaveLength(1);
});
