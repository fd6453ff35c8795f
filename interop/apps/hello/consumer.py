from ndn.app import NDNApp
from ndn.security import KeychainDigest

app = NDNApp(keychain=KeychainDigest())


async def main():
    _name, _meta, content = await app.express_interest("/example/hello", must_be_fresh=True)
    print(bytes(content).decode())
    app.shutdown()


app.run_forever(after_start=main())
