// A provider of identities on a loopback port, which tells its address in a line. `/approve` and `/deny` do
// what a person does in a browser who lets a terminal sign in, or does not.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const people = JSON.parse(process.argv[2]);

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'bellwether',
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token', 'authorization_code'],
      redirect_uris: ['http://127.0.0.1:9/signed-in', 'https://127.0.0.1:9/signed-in'],
      response_types: ['code'],
    },
    {
      client_id: 'another',
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: false } },
  conformIdTokenClaims: false,
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
  ttl: { IdToken: Number(process.argv[3]) },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.org`, email_verified: true, groups: people[id] ?? [] }),
  }),
});

async function deny(url) {
  const userCode = url.searchParams.get('user_code').replace('-', '');
  const code = await provider.DeviceCode.findByUserCode(userCode, { ignoreExpiration: true });
  Object.assign(code, { error: 'access_denied', errorDescription: 'no' });
  await code.save();
}

async function approve(url) {
  const [userCode, account] = [url.searchParams.get('user_code'), url.searchParams.get('account')];
  const code = await provider.DeviceCode.findByUserCode(userCode.replace('-', ''), { ignoreExpiration: true });
  const grant = new provider.Grant({ accountId: account, clientId: code.clientId });
  grant.addOIDCScope(code.params.scope);
  Object.assign(code, {
    accountId: account,
    authTime: Math.floor(Date.now() / 1000),
    grantId: await grant.save(),
    scope: code.params.scope,
    claims: {},
  });
  await code.save();
}

// Whoever comes by a browser is this person, and agrees.
let person = 'ada';

function come(url) {
  person = url.searchParams.get('account');
}

async function agree(request, response) {
  const { params } = await provider.interactionDetails(request, response);
  if (person === 'nobody') {
    return provider.interactionFinished(request, response, { error: 'access_denied' });
  }
  const grant = new provider.Grant({ accountId: person, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { login: { accountId: person }, consent });
}

const answer = provider.callback();
server.on('request', async (request, response) => {
  const url = new URL(request.url, issuer);
  const told = { '/approve': approve, '/deny': deny, '/come': come }[url.pathname];
  if (url.pathname.startsWith('/interaction/')) return agree(request, response);
  if (!told) {
    if (url.pathname === '/jwks') console.log('keys');
    return answer(request, response);
  }
  try {
    await told(url);
    response.end('approved');
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error));
  }
});
console.log(issuer);
