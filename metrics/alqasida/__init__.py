"""AL-QASIDA's classifiers, LightEval metrics and analyses."""
