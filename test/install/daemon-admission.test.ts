import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { serviceAccountUser, type User } from '../../workshop/apiserver/access/attributes.ts';
import { createAdmission } from '../../workshop/apiserver/admission/admission.ts';
import type { JsonObject } from '../../workshop/apiserver/json.ts';
import type { AdmissionRequest } from '../../workshop/apiserver/objects/object-metadata.ts';
import { builtinResource } from '../../workshop/apiserver/resources/builtin.ts';
import { bucketOf, type Resource } from '../../workshop/apiserver/resources/resource.ts';
import { createStore } from '../../workshop/apiserver/store/store.ts';
import type { StoredObject } from '../../workshop/apiserver/stored-object.ts';

const NODES: Resource = {
  ...builtinResource('', 'nodes'),
  group: 'machineconfiguration.openshift.io',
  plural: 'machineconfignodes',
  kind: 'MachineConfigNode',
};
const PLURALS: Readonly<Record<string, string>> = {
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
};

const store = createStore();
const file = join(import.meta.dirname, '../../manifests/base/daemon-admission.yaml');
for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
  const object = document.toJS() as JsonObject & StoredObject;
  const plural = PLURALS[String(object['kind'])] ?? '';
  store.put(bucketOf(builtinResource('admissionregistration.k8s.io', plural)), object);
}
const admit = createAdmission(store);

const request = (more: Partial<AdmissionRequest>): AdmissionRequest => ({
  operation: 'UPDATE',
  resource: NODES,
  subresource: 'status',
  namespace: '',
  name: 'a',
  user: serviceAccountUser('shale-system', 'shale-daemon'),
  object: { metadata: { name: 'a' } },
  ...more,
});

const onNode = (name: string): User => ({
  ...serviceAccountUser('shale-system', 'shale-daemon'),
  extra: { 'authentication.kubernetes.io/node-name': [name] },
});

test('the policy lets a daemon write the node it runs on', async () => {
  await expect(admit(request({ user: onNode('a') }))).resolves.toBeUndefined();
});

test.each([
  ['of another node', onNode('b')],
  ['without a node', serviceAccountUser('shale-system', 'shale-daemon')],
])('the policy keeps a daemon %s from it', async (_, user) => {
  await expect(admit(request({ user }))).rejects.toMatchObject({
    code: 422,
    message: expect.stringContaining(
      "ValidatingAdmissionPolicy 'shale-daemon-own-node' with binding 'shale-daemon-own-node' denied request: a daemon may write only",
    ),
  });
});

test('the policy is not about others, nor about other resources', async () => {
  await admit(request({ user: serviceAccountUser('shale-system', 'shale-operator') }));
  await admit(request({ resource: builtinResource('', 'nodes'), user: onNode('b') }));
});
