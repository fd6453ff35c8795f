from ndn.app import NDNApp
from ndn.security import KeychainDigest

app = NDNApp(keychain=KeychainDigest())


@app.route("/example")
def answer(name, _parameters, _application_parameters):
    app.put_data(name, content=b"hello", freshness_period=1000)


app.run_forever()
