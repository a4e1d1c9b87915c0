import { describe, expect, it } from 'vitest';
import { aNode } from '../../test/fixtures/objects.ts';
import { fleetLockId } from './node-id.ts';

describe('a node is known by', () => {
  const of = (machineID?: string) =>
    fleetLockId(aNode('worker-1', { status: { nodeInfo: machineID === undefined ? {} : { machineID } } }));

  it('the ID that Zincati uses on it', () => {
    // As systemd-id128(1) prints it: machine-id --app-specific=de35106b6ec24688b63afddaa156679b
    expect(of('dfa03b0c2d8f4d3f8a2b1c4e5f607182')).toBe('b9b73f45b0514f439e59d5e53fc1ca8b');
    expect(of('DFA03B0C-2D8F-4D3F-8A2B-1C4E5F607182')).toBe(of('dfa03b0c2d8f4d3f8a2b1c4e5f607182'));
  });

  it.each([undefined, '', 'uninitialized'])('its name, where its kubelet reports the machine ID %j', (id) => {
    expect(of(id)).toBe('worker-1');
  });
});
